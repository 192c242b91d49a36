"""`dgsr symmetries`: the combinations of the columns of a table on which a target depends."""

from __future__ import annotations

from typing import Annotated

import typer

from dgsr.cli.errors import input_errors
from dgsr.cli.options import ColumnsOption, DataArgument, DecimalMark, ThousandsMark
from dgsr.cli.output import print_json, print_line, print_note


def symmetries(
    data: DataArgument,
    target: Annotated[str, typer.Option(help="Column that depends on the others.")],
    columns: ColumnsOption = None,
    decimal: DecimalMark = None,
    thousands: ThousandsMark = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of sentences.")] = False,
) -> None:
    """Say which combinations of columns a target depends on, before any formula is known."""
    from dgsr.cli.tabular import read_table
    from dgsr.finders.fewer_columns.symmetries import ROWS_PER_COLUMN, columns_looked_at, find_symmetries
    from dgsr.finders.terms import WIDEST_TABLE

    with input_errors():
        table = read_table(data, target, columns or None, decimal=decimal, thousands=thousands)
        for note in table.notes:
            print_note(note)
        found = find_symmetries(table.X, table.y, table.feature_names, table.target)
    statements = [str(symmetry) for symmetry in found]
    nothing = "The rows show no symmetry."
    if not columns_looked_at(table.X):
        nothing = (
            f"The table was not looked at: it needs 2 to {WIDEST_TABLE} columns that are "
            f"neither constant nor copies, and {ROWS_PER_COLUMN} rows for each."
        )
    if as_json:
        if not statements:
            print_note(nothing)
        print_json(statements)
        return
    for statement in statements or [nothing]:
        print_line(statement)
