"""`dgsr show` and `dgsr predict`: what a saved fit found, and its values for another table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import dgsr
from dgsr.cli.errors import input_errors
from dgsr.cli.fit import print_result, result_of
from dgsr.cli.output import print_json, print_line, print_note

_Saved = Annotated[Path, typer.Argument(metavar="FIT", help="File that dgsr fit --save wrote.")]


def show(
    fit: _Saved,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the formulas of a saved fit, the chosen one marked."""
    with input_errors():
        regressor = dgsr.load(fit)
    result = result_of(regressor, "y")
    if as_json:
        print_json(result)
    else:
        print_result(regressor, result)


def predict(
    fit: _Saved,
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA.csv", help="Table with the columns of the fit; - reads standard input."),
    ],
    index: Annotated[
        str | None,
        typer.Option(
            help="Formula that dgsr show prints, by its number from 0 or the rule that would choose it."
        ),
    ] = None,
) -> None:
    """Print the values of the formula for every row of a table, nan where a cell is missing."""
    from dgsr.cli.tabular import read_columns

    with input_errors():
        regressor = dgsr.load(fit)
        X = read_columns(data, regressor.expression_.feature_names)
        is_whole = np.isfinite(X).all(axis=1)
        chosen = int(index) if index is not None and index.lstrip("-").isdigit() else index
        values = np.full(len(X), np.nan)
        if is_whole.any():
            values[is_whole] = regressor.predict(X[is_whole], index=chosen)
        if not is_whole.all():
            print_note(f"{np.sum(~is_whole):,} of {len(X):,} rows have a missing cell and no value.")
    for value in values.tolist():
        print_line(repr(value))
