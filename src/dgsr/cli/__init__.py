"""The command line: `dgsr fit`, `show`, `predict`, `symmetries`, `models`, `bench` and `pretrain`.

Results go to standard output; progress, notes and errors go to standard error. The exit codes are 0 for
success, 1 if some runs of a benchmark failed or a result could not be printed or written, 2 for wrong input,
130 after Ctrl-C and 143 after SIGTERM (`dgsr fit` then prints the best formula so far, if there is one). Slow
modules are imported inside the commands, so that `dgsr --help` and the completion of options in a shell
(`dgsr --install-completion`) answer at once.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

import dgsr
from dgsr.cli import bench, fit, models, pretrain, saved, symmetries
from dgsr.cli.errors import FAILED
from dgsr.cli.options import GroupedCommand
from dgsr.cli.output import drop_unprinted, print_error, print_line

app = typer.Typer(
    help="Symbolic regression: from a table of numbers to a formula.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_COMMANDS = (
    fit.fit,
    saved.show,
    saved.predict,
    symmetries.symmetries,
    models.models,
    bench.bench,
    pretrain.pretrain,
)
for command in _COMMANDS:
    app.command(cls=GroupedCommand, epilog=fit.EXAMPLES if command is fit.fit else None)(command)


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # escapes characters that its encoding lacks
    try:
        app(prog_name="dgsr")
    except OSError as error:
        print_error(error)
        raise SystemExit(FAILED) from None
    finally:
        drop_unprinted()


def _show_version(asked: bool) -> None:
    if asked:
        print_line(f"dgsr {dgsr.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass
