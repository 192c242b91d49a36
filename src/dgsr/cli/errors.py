"""The end of a command after wrong input, Ctrl-C, SIGTERM, or a result that cannot be written."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from dgsr.cli.output import print_error, print_message

#: Exit code if some runs of a benchmark failed, or a result could not be printed or written.
FAILED = 1


@contextmanager
def input_errors(
    interrupted: str = "interrupted before there was a result", signals: Sequence[int] = ()
) -> Iterator[None]:
    """Exit with a line that says what is wrong with the input, or after Ctrl-C with the line `interrupted`.

    The exit code for wrong input is 2. `signals` are those that `sigterm_interrupts` received.
    """
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print_error(error)
        raise typer.Exit(2) from None
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
        if not callable(handler):  # a shell starts programs in the background with SIGINT ignored
            raise KeyboardInterrupt
        handler(number, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def interrupted_code(signals: Sequence[int]) -> int:
    """Return the exit code after SIGTERM or Ctrl-C, as in shells: 128 and the number of the signal.

    `signals` are those that `sigterm_interrupts` received.
    """
    return 128 + (signal.SIGTERM if signals else signal.SIGINT)


def run_outputs(outputs: Sequence[Callable[[], None]]) -> None:
    """Print and write results one after the other, also after one that fails; then exit if any failed."""
    failed = False
    for output in outputs:
        try:
            output()
        except (OSError, ValueError) as error:  # ValueError if a file cannot hold the result
            failed = True
            print_error(error)
    if failed:
        raise typer.Exit(FAILED)
