"""Rows that `dgsr fit --test-size` holds out before the fit, and the fit of the formula to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgsr.cli.tabular import Table


def split(table: Table, share: float, seed: int) -> tuple[Table, Table]:
    """Return the rows of the fit and the rows held out, both in the order of the table.

    Held out is a `share` of the rows between 0 and 1, drawn by `seed`. ValueError if it is not, if the fit or
    the test would have fewer than two rows, or if all rows held out have the weight 0.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(
            f"--test-size {share:g} must be between 0 and 1, such as 0.25 for a quarter of the rows."
        )
    n = len(table.y)
    n_out = round(share * n)
    if min(n_out, n - n_out) < 2:
        raise ValueError(
            f"--test-size {share:g} holds out {n_out} of {n} rows, and the fit and the test need at least "
            "2 each; give more rows, or another share."
        )
    is_out = np.zeros(n, dtype=np.bool_)
    is_out[np.random.default_rng(seed).permutation(n)[:n_out]] = True
    if table.weights is not None and not table.weights[is_out].any():
        raise ValueError(
            f"--test-size {share:g} holds out {n_out} rows whose weights are all 0; choose another "
            "--random-state or a larger share."
        )
    return _rows(table, ~is_out), _rows(table, is_out)


def _rows(table: Table, chosen: np.ndarray) -> Table:
    X, y, lines = table.X[chosen], table.y[chosen], table.lines[chosen]
    weights, groups = (None if each is None else each[chosen] for each in (table.weights, table.groups))
    return table._replace(X=X, y=y, lines=lines, weights=weights, groups=groups)


def score_of(predicted: np.ndarray, rows: Table) -> dict[str, Any]:
    """Return the number of rows, R2 and NMSE of predictions on rows held out.

    NMSE is the mean squared residual divided by the variance of the targets of these rows, and R2 is
    1 - NMSE. Both are None if the formula has no value in some row, or the targets do not vary.
    """
    with np.errstate(all="ignore"):
        mean = np.average(rows.y, weights=rows.weights)
        variance = np.average((rows.y - mean) ** 2, weights=rows.weights)
        nmse = float(np.average((rows.y - predicted) ** 2, weights=rows.weights) / variance)
    is_known = bool(np.isfinite(nmse))
    return {"n_rows": len(rows.y), "r2": 1.0 - nmse if is_known else None, "nmse": nmse if is_known else None}
