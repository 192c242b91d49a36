"""The output of the commands: results on standard output; notes, errors and progress on standard error."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dgsr.reporting.numbers import cell
from dgsr.reporting.progress import begin_phase, printable, shown

# A part of a formula that is not broken, with the space behind it: a name, a number or a sign.
_PART = re.compile(r"(?:`(?:[^`\\]|\\.)*`|\d[\d.]*(?:e[+-]?\d+)?|\w+|\*\*|.) ?", re.DOTALL)

# The console of both notes and progress, so that a note does not break a live line of progress.
_STDERR = Console(stderr=True, highlight=False)


def print_line(line: str = "") -> None:
    """Print one line of text, with escapes for characters that are not printable."""
    _print(printable(line))


def print_json(content: Any) -> None:
    """Print JSON, whose numbers must be finite."""
    _print(json.dumps(content, indent=2, allow_nan=False))


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print one or more rows with the same keys as a table, which is never truncated in a file or a pipe."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in rows[0]:
        is_number = all(isinstance(row[name], int | float) for row in rows)
        is_whole = all(len(_PART.findall(cell(row[name]))) <= 1 for row in rows)
        table.add_column(
            Text(name, style="bold"),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_whole,
        )
    for row in rows:
        table.add_row(*(_Cell(printable(cell(value))) for value in row.values()))
    if sys.stdout is not None and sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    lines = io.StringIO()
    Console(file=lines, width=10_000, highlight=False).print(table)
    for line in lines.getvalue().splitlines():
        print_line(line.rstrip())  # without the spaces that fill the last column


class _Cell:
    """A text that is broken into lines between the names, numbers and signs of a formula alone."""

    def __init__(self, text: str) -> None:
        self._parts: list[str] = _PART.findall(text)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [*map(cell_len, self._parts), 0]
        return Measurement(max(widths), sum(widths)).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = [""]
        for part in self._parts:
            if lines[-1] and cell_len(lines[-1] + part.rstrip()) > options.max_width:
                lines.append("")
            lines[-1] += part
        yield Text("\n".join(map(str.rstrip, lines)))


def _print(text: str) -> None:
    try:
        typer.echo(text)
    except OSError as error:
        raise type(error)(
            f"Standard output cannot be written ({error.strerror}); send it to where there is room."
        ) from error


def drop_unprinted() -> None:
    """Flush standard output; if that fails, redirect it, so that Python does not fail again at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Standard error ----------------------------------------------------------------------------------------


def print_message(message: str) -> None:
    """Print one line on standard error."""
    typer.echo(printable(message), err=True)


def print_error(error: Exception) -> None:
    """Print an error in one line, unless the reader of the output, such as head, has ended."""
    # Where scikit-learn's validation names a parameter, there is an option.
    text = re.sub(r"^The '(\w+)' parameter of \S+", lambda of: f"--{of[1].replace('_', '-')}", str(error))
    if isinstance(error, OSError) and error.filename is not None:  # of the operating system, without a mend
        text = (
            f"{error.filename} cannot be read or written ({error.strerror}); name a place in a folder that "
            "exists, and that may be read and written."
        )
    if not isinstance(error, BrokenPipeError):
        print_message(f"error: {text}")


def print_note(message: str) -> None:
    """Print one line that begins with "note:" on standard error."""
    _STDERR.print(Text(printable(f"note: {message}")), soft_wrap=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show each warning once, as a note of one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: print_note(str(message))
        yield


@contextmanager
def progress(
    quiet: bool, line: Callable[[Any], str] = str, phase: str = "starting"
) -> Iterator[Callable[[Any], None] | None]:
    """Yield a callback that shows progress, or None if `quiet`; `phase` is the first."""
    if quiet:
        yield None
        return
    with shown(line, _STDERR) as show:
        begin_phase(phase)
        yield show
