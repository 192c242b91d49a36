"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA.csv", help="Table whose first line names the columns; - reads standard input."
    ),
]
ColumnsOption = Annotated[
    list[str] | None, typer.Option(help="Column to take as an input, instead of all. May be repeated.")
]
DecimalMark = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", help="Decimal mark of the table, . or , where its numbers do not show which it is."
    ),
]
ThousandsMark = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="Mark between thousands of the table: , or . or ' or space or none."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AllOption = Annotated[
    bool, typer.Option("--all", help="Print all formulas of the front, not the eight about the chosen one.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
