"""`dgsr show` and `dgsr predict`: the formulas of a saved fit, and their values for another table."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import dgsr
from dgsr.cli.errors import input_errors
from dgsr.cli.fit import check_files
from dgsr.cli.options import OUTPUT, AllOption, DecimalMark, JsonOption, ThousandsMark
from dgsr.cli.output import print_json, print_line, print_note, warnings_as_notes
from dgsr.cli.results import print_result, result_of

if TYPE_CHECKING:
    from dgsr.estimator.regressor import DGSRRegressor
    from dgsr.pareto import ParetoFront

_Saved = Annotated[Path, typer.Argument(metavar="FIT", help="File that dgsr fit --save wrote.")]


def show(fit: _Saved, as_json: JsonOption = False, all_rows: AllOption = False) -> None:
    """Print the formulas of a saved fit, the chosen one marked."""
    with input_errors():
        regressor = _loaded(fit)
    result = result_of(regressor, regressor.target_name_)
    if as_json:
        print_json(result)
    else:
        print_result(regressor, result, all_rows)


def predict(
    fit: _Saved,
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA.csv", help="Table with the columns of the fit; - reads standard input."),
    ],
    index: Annotated[
        str | None,
        typer.Option(
            help="Formula to evaluate, by its index in the table of dgsr show, from 0, or by the rule that "
            "would choose it: mdl, bic, score, accuracy or holdout."
        ),
    ] = None,
    decimal: DecimalMark = None,
    thousands: ThousandsMark = None,
    out: Annotated[
        Path | None, OUTPUT(help="File to write the table to with the values as a further column.")
    ] = None,
) -> None:
    """Print the values of the formula for every row of a table, nan where a cell is missing.

    With --out the table is written with them instead, its other cells as they are.
    """
    from dgsr.cli.tabular import read_columns, with_groups
    from dgsr.files.writing import write_atomically

    with input_errors(), warnings_as_notes():
        check_files({"the table": data, "the fit": fit}, {"--out": out})
        regressor = _loaded(fit)
        chosen = None if index is None else _candidate(index, regressor.pareto_front_)
        names, column = [*regressor.expression_.feature_names], regressor.group_column_
        groups = None if column is None else names.pop(column)
        X, labels, notes, with_column = read_columns(data, names, decimal, thousands, groups)
        for note in notes:
            print_note(note)
        is_whole = np.isfinite(X).all(axis=1)
        if labels is not None:
            is_whole &= labels.notna().to_numpy()
        values = np.full(len(X), np.nan)
        if is_whole.any():
            if labels is not None:  # a fit in Python may have had labels that are numbers
                labels = labels[is_whole].map(_known_labels(regressor.groups_ or ()))
            is_apart = column == regressor.n_features_in_
            rows = with_groups(X[is_whole], names, None if is_apart else labels)
            rows = rows[[*regressor.expression_.feature_names[: regressor.n_features_in_]]]
            if not hasattr(regressor, "feature_names_in_"):
                rows.columns = range(len(rows.columns))
            values[is_whole] = regressor.predict(rows, index=chosen, groups=labels if is_apart else None)
        if not is_whole.all():
            print_note(f"{np.sum(~is_whole):,} of {len(X):,} rows have a missing cell and no value.")
        if out is not None:
            text = with_column(f"predicted {regressor.target_name_}", values)
            write_atomically(out, text.encode())
            return
    for value in values.tolist():
        print_line(repr(value))


def _known_labels(labels: Sequence[Hashable]) -> Callable[[str], Hashable]:
    """Return a function of texts that returns the labels of a fit, the text itself for a new one."""
    known: dict[str, Hashable] = {}
    for label in labels:
        if isinstance(label, float) and label.is_integer():
            known[str(int(label))] = label
        known[str(label)] = label
    return lambda text: known.get(text, text)


def _loaded(fit: Path) -> DGSRRegressor:
    """Return the estimator in a file; ValueError if there is none, or the file cannot be read."""
    try:
        regressor = dgsr.load(fit)
        if hasattr(regressor, "estimators_"):
            n = len(regressor.estimators_)
            raise ValueError(f"{fit} has formulas of {n} targets; use dgsr.load and predict in Python.")
        return regressor
    except OSError as error:
        reason = "is a folder" if fit.is_dir() else f"cannot be read ({error.strerror or error})"
        reason = reason if fit.exists() else "does not exist"
        raise ValueError(f"{fit} {reason}; name a file that dgsr fit --save wrote.") from error


def _candidate(index: str, front: ParetoFront) -> int | str:
    """Return the number or the rule in a text; ValueError if there is no such candidate or rule."""
    from dgsr.pareto import SELECTIONS

    if index in SELECTIONS:
        return index
    if not re.fullmatch("-?[0-9]{1,9}", index) or not -len(front) <= int(index) < len(front):
        raise ValueError(
            f"--index {index!r} is no candidate; give a number from 0 to {len(front) - 1}, or the name of a "
            f"rule: {', '.join(SELECTIONS)}."
        )
    return int(index)
