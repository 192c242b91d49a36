"""Reading a table of numbers from a CSV file, for the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dgsr.cli.cells import Cells, read_cells
from dgsr.cli.dialect import one_line, read_sheet
from dgsr.cli.names import unit_of, without_unit
from dgsr.cli.quoting import TableError, counted, lines_text, listed, quoted
from dgsr.expressions.exports.identifiers import fresh

if TYPE_CHECKING:
    import pandas

# Largest share of missing cells in a column that is an input by default. With more, it would cost more rows
# than it leaves.
_MOST_MISSING = 0.5


class Table(NamedTuple):
    """The columns of a CSV file, split into inputs and target."""

    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,) float64
    feature_names: tuple[str, ...]
    target: str
    lines: np.ndarray  # (n_samples,): the lines of the file on which the rows end
    notes: tuple[str, ...] = ()  # sentences on what was left out, or read in a way that may surprise
    weights: np.ndarray | None = None  # (n_samples,) int64 if all consist of digits, otherwise float64
    units: Mapping[str, str] = {}  # those in a row below the names or behind them, of inputs and target
    groups: pandas.Series | None = None  # the labels of groups, texts, with the name of their column

    @property
    def inputs(self) -> pandas.DataFrame:
        """The inputs with their names, the groups last, as a DataFrame for the estimator."""
        return with_groups(self.X, self.feature_names, self.groups)


def with_groups(X: np.ndarray, names: Sequence[str], groups: pandas.Series | None) -> pandas.DataFrame:
    """Return columns (n_rows, n_columns) with their names as a DataFrame, and a column of groups last."""
    import pandas

    table = pandas.DataFrame(X, columns=list(names))
    return table if groups is None else table.assign(**{str(groups.name): groups.to_numpy()})


def read_table(
    path: Path | str,
    target: str,
    columns: Sequence[str] | None = None,
    weights: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    groups: str | None = None,
) -> Table:
    """Read a CSV file with a line that names the columns.

    Cells are separated by commas, semicolons, tabs or spaces; empty lines and lines that begin with ``#`` are
    skipped. Rows with a missing cell are left out. Notes say what was read in a way that may surprise, and a
    cell that can be read as different numbers is an error (`Marks`).

    Parameters
    ----------
    path : Path or str
        ``-`` is standard input.
    target : str
        Column to predict.
    columns : sequence of str, optional
        Inputs; by default all other columns that have numbers in most rows and are no index of the rows.
    weights : str, optional
        Column of the weights of the rows. They are counts, as in `DGSRRegressor.fit`, if all are written with
        digits alone, as 2 and not as 2.0.
    decimal, thousands : str, optional
        Decimal mark, and mark between thousands, ``"space"`` or ``"none"``; by default they follow from the
        table.
    groups : str, optional
        Column of the labels of groups, which are texts.

    Raises
    ------
    TableError
        If there is no such file, it is not a table of finite numbers with at least two rows and two
        columns, or it lacks a column; or if an input is given twice, or is the target or the weights, too; or
        if a weight is negative, or all are 0.
    """
    target = one_line(target)
    weights = None if weights is None else one_line(weights)
    columns = None if columns is None else [*map(one_line, columns)]
    if weights == target:
        raise TableError(f"{quoted(target)} is the target and the weights; choose one of them.")
    groups = None if groups is None else one_line(groups)
    if groups is not None and groups in (target, weights):
        raise TableError(f"{quoted(groups)} is the groups and the target or the weights; choose one of them.")
    others = [name for name in (target, weights) if name is not None]
    if double := next((name for name in columns or () if name in (*others, groups)), None):
        raise TableError(
            f"{quoted(double)} is an input and the target, the weights or the groups; choose one of them."
        )
    if double := next((name for name, n in Counter(columns or ()).items() if n > 1), None):
        raise TableError(f"{quoted(double)} is given as an input more than once; give every input once.")
    apart = [*others, *([] if groups is None else [groups])]
    cells = read_cells(read_sheet(path, [*(columns or ()), *apart]), decimal, thousands)
    columns = _inputs(cells, others, groups) if columns is None else columns
    rows = cells.columns([*columns, *others])
    is_missing = rows.isna().any(axis=1)
    if groups is not None:
        is_missing |= cells.is_missing[groups]
    why = ""
    if n_missing := is_missing.sum():
        are = counted(n_missing, "row with a missing cell", "rows with a missing cell")
        left_out = f"{are} left out: {lines_text(rows.index[is_missing])}"
        cells.notes.append(f"{left_out}.")
        rows, why = rows[~is_missing], f" ({left_out})"
    if len(rows) < 2:
        found = "1 row" if len(rows) else "no rows"
        raise TableError(
            f"{cells.path} has {found} of numbers under its header; a fit needs at least 2{why}."
        )
    if weights is not None and (least := rows[weights].min()) < 0.0:
        raise TableError(
            f"{cells.path}, line {rows[weights].idxmin()}: {least:.15g} for {quoted(weights)} is a negative "
            "weight; write weights of at least 0."
        )
    if weights is not None and not rows[weights].any():
        raise TableError(f"{cells.path} has weights {quoted(weights)} that are all 0; give some row another.")
    n, values = len(columns), rows.to_numpy()
    are_counts = (
        weights is not None and cells.text.loc[rows.index, weights].str.fullmatch("[0-9]{1,15}").all()
    )
    return Table(
        np.ascontiguousarray(values[:, :n]),
        values[:, n].copy(),
        tuple(columns),
        target,
        rows.index.to_numpy(),
        tuple(cells.notes),
        None if weights is None else values[:, n + 1].astype(np.int64 if are_counts else np.float64),
        _units(cells, [*columns, target]),
        None if groups is None else cells.text.loc[rows.index, groups].str.strip(),
    )


def read_columns(
    path: Path | str,
    columns: Sequence[str],
    decimal: str | None = None,
    thousands: str | None = None,
    groups: str | None = None,
) -> tuple[np.ndarray, pandas.Series | None, list[str], Callable[[str, np.ndarray], str]]:
    """Return columns of a CSV file, shape (n_rows, n_columns), NaN where a cell is missing, and the notes.

    The labels of the column of groups are returned, too, NaN where a cell is missing, None without such a
    column. Rows without any value are rows, too. The function that is returned as well takes the name and the
    values of a further column, and returns the text of the file with this column; values that are NaN are
    empty cells.
    """
    columns = [*map(one_line, columns)]
    sheet = read_sheet(path, [*columns, *([] if groups is None else [groups])], keeps_empty=True)
    cells = read_cells(sheet, decimal, thousands)
    numbers, mark = cells.columns(columns), cells.marks_of(columns)[0].decimal

    def with_column(name: str, values: np.ndarray) -> str:
        texts = {line: repr(value).replace(".", mark) for line, value in zip(numbers.index, values.tolist())}
        known = {line: text for line, text in texts.items() if text != "nan"}
        return sheet.with_column(fresh(name, sheet.text.columns), known)

    labels = None if groups is None else cells.text[groups].str.strip().mask(cells.is_missing[groups])
    return numbers.to_numpy(), labels, cells.notes, with_column


def _units(cells: Cells, names: Sequence[str]) -> dict[str, str]:
    """Return the units in a row below the names, or else behind them."""
    found = {name: cells.units.get(name, without_unit(name)[1]) for name in names}
    return {name: unit_of(unit) for name, unit in found.items() if unit is not None}


def _inputs(cells: Cells, others: Sequence[str], groups: str | None) -> list[str]:
    """Return the names of the inputs: all columns except `others` and those that a note says are left out.

    The column of groups is none of them.
    """
    from dgsr.data.checks import is_index, numbers_the_rows

    names = [name for name in cells.text.columns if name not in (*others, groups)]
    numbers = next(iter(cells.readings.values()))
    has_number = cells.has_number.any()
    if "" in names:
        if has_number[""] and not numbers_the_rows(numbers[""].to_numpy()):
            raise TableError(
                f"{cells.path} gives column 1 no name; name every column in the first line, or leave names "
                "of rows out: to_csv(..., index=False) in Python, write.csv(..., row.names=FALSE) in R."
            )
        what = "the numbers of the rows" if has_number[""] else "no number"
        cells.notes.append(f"Column 1 has no name and {what}; it is left out.")
        names.remove("")
    if not names:
        raise TableError(
            f"{cells.path} has no column but the target {others[0]!r}; add at least one input column."
        )
    is_used = ~cells.is_missing[list(others)].any(axis=1)
    share_missing = cells.is_missing[is_used].mean()
    keep = " Name the inputs by --columns to keep it."
    for is_no_input, what, mend in (
        (lambda name: not has_number[name], " without a number", ""),
        (lambda name: share_missing[name] > _MOST_MISSING, " with most cells missing", keep),
        (lambda name: is_index(numbers[name].to_numpy()), " with the numbers of the rows", keep),
    ):
        left_out = [name for name in names if is_no_input(name)]
        if 0 < len(left_out) < len(names):
            are = counted(len(left_out), f"column{what}", f"columns{what}")
            cells.notes.append(f"{are} left out: {listed(left_out)}.{mend}")
            names = [name for name in names if name not in left_out]
    return names
