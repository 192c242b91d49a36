"""What a formula is judged by: losses other than the square, as weights of the rows.

A loss rho(y, f) of one row is the square of its residual times the weight rho / (y - f)**2. So a search for
the lowest loss is a search for the lowest weighted square, whose weights follow from the best formula so far
(iteratively reweighted least squares; Beaton and Tukey, 1974). Relative errors need one pass, since their
weights do not depend on the formula. The others take three. If they forgive outliers, they begin with weights
that leave out what lies far from its neighbours, because formulas that are searched for by plain squares bend
towards outliers. ``"auto"`` judges squares, too, until the formulas found so far show outliers
(`dgsr.fitting.outliers`). Where errors may grow with the targets it tries relative errors, too, and goes on
with what describes the table in fewer bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from dgsr.constants.uncertainty import DEVIATIONS, HUBER
from dgsr.data.dataset import DataSet, weighted_median
from dgsr.fitting.loss_formulas import LOSSES, values_of

#: The loss of `"auto"` where some rows are outliers, which weigh next to nothing.
WITHOUT_OUTLIERS = "squared without outliers"
#: A function of the targets and the values of a formula, both of shape (n_rows,), that returns the loss of
#: every row, not negative.
Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Residuals below this share of the median one are taken for it, so that no weight is infinite.
_SMALLEST = 0.01
# Residuals that a loss is tried at, in standard deviations of the targets.
_TRIED = (1.0, 1e-3, 0.1, 10.0)
# Share of the usual loss of a row that is far off below which a loss is 0 up to rounding.
_ROUNDING = 1e-6
# How often the residual of a row is halved until the loss has a value there.
_HALVINGS = 60
# Least precision, so that its logarithm is finite.
_LEAST = 1e-250
# Neighbours of a row, and the robust standard deviations beyond which its target is far from theirs.
_N_NEIGHBOURS, _FAR = 6, 3.0
# Most rows whose neighbours are looked for, which takes a tenth of a second.
_MOST_ROWS = 5_000
# Whether errors grow with the target can be told from where its largest value is so many times its smallest.
_DECADE = 10.0


# Shares of the rest of the budget at which the first searches without outliers end.
_ENDS = (0.4, 0.65)
# Shares of the budget at which the searches by squares and by relative errors end where errors may grow. That
# is before outliers are looked for, because large rows with large errors look like some.
_ENDS_OF_BOTH = (0.3, 0.5)


class Pass(NamedTuple):
    """One search of a fit: the loss that its rows are weighted by, and the share of the budget it ends at."""

    loss: str | Loss
    until: float
    goes_on: bool  # whether it begins with what the last pass found

    def after(self, planned: float, spent: float) -> Pass:
        """Return the pass with its part of the rest, where the one before took more than was planned."""
        return self._replace(until=spent + (self.until - planned) / (1.0 - planned) * (1.0 - spent))


def passes(loss: str | Loss, y: np.ndarray) -> list[Pass]:
    """Return the searches of a fit with some loss on the targets `y`, shape (n_rows,)."""
    if loss == "auto" and may_grow(y):
        ends = _ENDS_OF_BOTH
        return [Pass("squared", ends[0], False), Pass("relative", ends[1], False), Pass("best", 1.0, True)]
    if loss in ("auto", "squared", "relative"):
        return [Pass("squared" if loss == "auto" else loss, 1.0, False)]
    first = "neighbours" if _forgives(loss, y) else "squared"
    return [Pass(first, 0.4, False), Pass(loss, 0.7, True), Pass(loss, 1.0, True)]


def passes_without_outliers(spent: float) -> list[Pass]:
    """Return the searches that follow where a table shows outliers, once a share of the budget is spent.

    The last goes on with what describes the table best: the formulas of these searches or of those before.
    """
    ends = [spent + share * (1.0 - spent) for share in _ENDS]
    first, second = (Pass(WITHOUT_OUTLIERS, end, number > 0) for number, end in enumerate(ends))
    return [first, second, Pass("best", 1.0, True)]


def _forgives(loss: str | Loss, y: np.ndarray) -> bool:
    """Return whether large residuals count less under a loss than their squares do."""
    if loss in LOSSES:
        return True
    with np.errstate(all="ignore"):
        small, large = (np.mean(_rows_of(loss, y, y + size * y.std())) for size in (1.0, 10.0))
    return bool(large < 10.0**1.5 * small)  # not where it has no value for such predictions


def may_grow(y: np.ndarray) -> bool:
    """Return whether targets of shape (n_rows,) have one sign and vary by a decade, as errors may, too."""
    sizes = np.abs(y)
    has_one_sign = y.min() > 0.0 or y.max() < 0.0
    return bool(has_one_sign and sizes.max() >= _DECADE * sizes.min())


def check_loss(loss: str | Loss, y: np.ndarray) -> None:
    """Raise ValueError if a loss has no meaning for some targets."""
    if loss == "relative" and not np.all(y):
        n = int(np.sum(y == 0.0))
        raise ValueError(
            f"loss='relative' needs targets other than 0, and y is 0 in {n} rows; leave these out, or choose "
            "another loss."
        )
    if not isinstance(loss, str) or loss not in LOSSES:
        with np.errstate(all="ignore"):
            _check_tried(loss, y)


def _check_tried(loss: str | Loss, y: np.ndarray) -> None:
    """Raise ValueError if a formula or a callable is no loss on targets of shape (n_rows,), which vary.

    A loss is 0 where the prediction is the target, and not negative elsewhere. It is tried at residuals of
    several sizes, where it may have no value, and at the mean of the targets.
    """
    named = f"loss={loss!r}" if isinstance(loss, str) else "loss"
    try:
        at = _rows_of(loss, y, y)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(
            f"loss raised {type(error).__name__}: {error}; it is given the targets and the predictions, "
            "arrays of shape (n_rows,), and must return the loss of every row as numbers."
        ) from error
    without = np.flatnonzero(~np.isfinite(at))
    if len(without):
        raise ValueError(
            f"{named} has no value in {len(without)} rows where the prediction is the target, in the first "
            f"of which y is {y[without[0]]:g}; leave these rows out, or write another loss."
        )
    tried = [y + side * size * y.std() for size in _TRIED for side in (-1.0, 1.0)]
    values = np.array([_rows_of(loss, y, predicted) for predicted in (*tried, np.full(len(y), y.mean()))])
    has_value = np.isfinite(values)
    far = np.abs(values[:2][has_value[:2]])
    usual = float(np.median(far)) if len(far) else 0.0
    if (values[has_value] < -_ROUNDING * usual).any():
        raise ValueError(
            f"{named} is negative for some predictions; write its size, as abs(...), or its square."
        )
    if (largest := float(np.abs(at).max())) > _ROUNDING * usual:
        raise ValueError(
            f"{named} must be 0 where the prediction is the target, and is up to {largest:g} there; subtract "
            "what it is there."
        )
    if not values[has_value].any():
        raise ValueError(
            f"{named} is 0 or has no value for all predictions that are up to {max(_TRIED):g} standard "
            "deviations off, so that any formula would do; write one that grows with the error."
        )


def precisions(loss: str | Loss, data: DataSet, predicted: np.ndarray) -> np.ndarray:
    """Return the weights of rows with which squared residuals are a loss.

    Parameters
    ----------
    loss : str or callable
        The loss of a `Pass`. A row in which a callable or a formula has no value, as the logarithm of a
        negative prediction has none, weighs as with a prediction nearer to the target, where it has one.
    data : DataSet
        The rows, with the weights of the measurements.
    predicted : ndarray of shape (n_rows,)
        Values of the best formula so far.

    Returns
    -------
    ndarray of shape (n_rows,)
        At most 1, the largest.

    Raises
    ------
    ValueError
        If a callable or a formula does not have one finite value for every row, not negative.
    """
    y = data.y
    if loss == "squared":
        return np.ones(len(y))
    if loss == "neighbours":
        return near_neighbours(data)
    if loss == "relative":
        return np.maximum((np.abs(y).min() / np.abs(y)) ** 2, _LEAST)
    residuals = y - predicted
    sizes = np.abs(residuals)
    middle = weighted_median(sizes, data.weights)
    if middle == 0.0:  # most rows are exact, and the others are outliers
        middle = float(sizes.max()) * 1e-6 or 1.0
    sizes = np.maximum(sizes, _SMALLEST * middle)
    if loss == "absolute":
        found = 1.0 / sizes
    elif loss == "huber":
        found = np.minimum(1.0, HUBER * DEVIATIONS * middle / sizes)
    else:
        values, sizes = _with_values(loss, y, np.copysign(sizes, residuals))
        found = values / sizes**2
    if found.max() == 0.0:  # the loss forgives all residuals
        return np.ones(len(y))
    return np.maximum(found / found.max(), _LEAST)


def ranks_of(columns: np.ndarray) -> np.ndarray:
    """Return the ranks of values in their columns, by which no column outweighs another: (n_rows, n_columns).

    Equal values are ranked at random, since the rows of equal inputs are in the order of their targets.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
    """
    order = np.random.default_rng(0).permutation(columns.shape[1])
    ranks = np.empty(columns.T.shape)
    ranks[order] = np.argsort(np.argsort(columns.T[order], axis=0, kind="stable"), axis=0)
    return ranks


def near_neighbours(data: DataSet) -> np.ndarray:
    """Return low weights for rows whose target is far from the median of their neighbours' targets.

    Where rows are more than a search or a fit of constants sees, all weigh the same.
    """
    y = data.y
    if len(y) > _MOST_ROWS:
        return np.ones(len(y))
    ranks = ranks_of(data.columns)
    n = min(_N_NEIGHBOURS, len(y) - 1)
    _, nearest = cKDTree(ranks).query(ranks, k=n + 1)
    sizes = np.abs(y - np.median(y[nearest[:, 1:]], axis=1))
    limit = _FAR * DEVIATIONS * weighted_median(sizes, data.weights) or float(sizes.max()) or 1.0
    return np.maximum(np.minimum(1.0, limit / np.maximum(sizes, limit)) ** 4, _LEAST)


def _rows_of(loss: str | Loss, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return what a formula or a callable computes for each row."""
    if isinstance(loss, str):
        return values_of(loss, y, predicted)
    # What it raises passes through: amid a search it may be the alarm of whoever limits the time of a fit.
    values = np.asarray(loss(y.copy(), predicted.copy())).astype(np.float64, casting="same_kind")
    if values.shape != y.shape:
        raise ValueError(
            f"loss returned an array of shape {values.shape} for {len(y)} rows; it must return the loss of "
            "every row, and not their mean."
        )
    return values


def _with_values(loss: str | Loss, y: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each row, and the residuals it is of, halved where the loss had no value.

    ValueError where the loss is negative, or has no value beside the target either.
    """
    values = _rows_of(loss, y, y - residuals)
    for _ in range(_HALVINGS):
        without = ~np.isfinite(values)
        if not without.any():
            break
        residuals = np.where(without, 0.5 * residuals, residuals)
        values = _rows_of(loss, y, y - residuals)
    if not (np.isfinite(values).all() and values.min() >= 0.0):
        raise ValueError("loss has values that are negative or not finite; mend the function or the formula.")
    return values, residuals


def description(loss: str | Loss, data: DataSet, predicted: np.ndarray) -> float:
    """Return the bits of the residuals of a formula under normal noise, so that losses can be compared.

    The standard deviation of the noise is the same in all rows, or for ``"relative"`` in proportion to the
    formula. It must not be in proportion to the target, which would let a formula that is 0 everywhere be
    one standard deviation off in every row, however small the target.

    Parameters
    ----------
    loss : str or callable
    data : DataSet
        The rows as given, not weighted by a precision.
    predicted : ndarray of shape (n_rows,)
        Values of the formula.
    """
    shares = data.weights / data.weights.sum()
    scale = np.abs(predicted) if loss == "relative" else np.ones(len(predicted))
    with np.errstate(all="ignore"):
        square = np.sum(shares * ((data.y - predicted) / scale) ** 2)
        bits = data.n_effective * (0.5 * np.log2(square) + np.sum(shares * np.log2(scale)))
    return float(bits) if np.isfinite(square) and scale.min() > 0.0 else np.inf
