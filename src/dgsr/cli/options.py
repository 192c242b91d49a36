"""Arguments and options that several commands have."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help lists its options in groups, in plain text that is cut nowhere."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            usual = f"{parameter.param_type_name}s".capitalize()
            group = groups.setdefault(getattr(parameter, "rich_help_panel", None) or usual, [])
            group.append(parameter.get_help_record(ctx))
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(list(filter(None, records)))


DATA = partial(typer.Option, rich_help_panel="Data")
FORMULAS = partial(typer.Option, rich_help_panel="Formulas")
SEARCH = partial(typer.Option, rich_help_panel="Search")
OUTPUT = partial(typer.Option, rich_help_panel="Output")

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA.csv", help="Table whose first line names the columns; - reads standard input."
    ),
]
ColumnsOption = Annotated[
    list[str] | None, DATA(help="Column to take as an input, instead of all. May be repeated.")
]
DecimalMark = Annotated[
    str | None,
    DATA(metavar="MARK", help="Decimal mark of the table, . or , where its numbers do not show which it is."),
]
ThousandsMark = Annotated[
    str | None,
    DATA(metavar="MARK", help="Mark between thousands of the table: , or . or ' or space or none."),
]
JsonOption = Annotated[bool, OUTPUT("--json", help="Print JSON instead of a table.")]
AllOption = Annotated[
    bool, OUTPUT("--all", help="Print all formulas of the front, not the eight about the chosen one.")
]
QuietOption = Annotated[bool, OUTPUT("--quiet", help="Show no progress.")]
