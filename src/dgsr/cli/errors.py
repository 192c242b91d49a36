"""How a command ends: wrong input, Ctrl-C, SIGTERM, and results that cannot be written."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from dgsr.cli.output import print_error, print_message

FAILED, WRONG_INPUT = 1, 2
INTERRUPTED, TERMINATED = 130, 143  # the codes of shells for programs ended by these signals


@contextmanager
def input_errors(
    interrupted: str = "interrupted before there was a result", signals: Sequence[int] = ()
) -> Iterator[None]:
    """Exit with one line on what is wrong with the input, or on what an interruption left behind.

    Parameters
    ----------
    interrupted : str
        The line that is printed after Ctrl-C.
    signals : sequence of int
        Signals that `sigterm_interrupts` received.
    """
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print_error(error)
        raise typer.Exit(WRONG_INPUT) from None
    except KeyboardInterrupt:
        print_message(interrupted)
        raise typer.Exit(interrupted_code(signals)) from None


@contextmanager
def sigterm_interrupts() -> Iterator[list[int]]:
    """Let SIGTERM interrupt the block as Ctrl-C does; yield the list of the signals received."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # a shell starts programs in the background so
            raise KeyboardInterrupt
        handler(number, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def interrupted_code(signals: Sequence[int]) -> int:
    """Return the exit code after an interruption, given the signals that `sigterm_interrupts` received."""
    return TERMINATED if signals else INTERRUPTED


def run_outputs(outputs: Sequence[Callable[[], None]]) -> None:
    """Print and write results in turn; where one fails, the others are written all the same."""
    failed = False
    for output in outputs:
        try:
            output()
        except (OSError, ValueError) as error:  # the latter where a file cannot hold it
            failed = True
            print_error(error)
    if failed:
        raise typer.Exit(FAILED)
