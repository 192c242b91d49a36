"""Losses other than the square, as weights of the rows.

A loss rho(y, f) of one row is the square of its residual times the weight rho / (y - f)**2. So a search for
the lowest loss is a search for the lowest weighted square, whose weights follow from the best formula so far
(iteratively reweighted least squares; Beaton and Tukey, 1974). Each search of a fit is a pass. Relative
errors need one pass, since their weights do not depend on the formula; the other losses take three. If a loss
is robust to outliers, its first pass has low weights for rows far from their neighbours, because formulas
that are fitted by plain squares bend towards outliers. ``"auto"`` means squares until the formulas found so
far show outliers (`dgsr.fitting.outliers`). Where errors may grow with the targets, it has a pass with
relative errors, too, and continues with the loss that gives the shorter description of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from dgsr.constants.uncertainty import HUBER, MAD_TO_SIGMA
from dgsr.data.dataset import DataSet, weighted_median
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import Tree, leaves

#: The losses that have a name and are not written as a formula, such as ``"abs(target - prediction)"``.
LOSSES = ("auto", "squared", "relative", "absolute", "huber")
# Names of losses elsewhere.
_ELSEWHERE = {
    **dict.fromkeys(("mse", "rmse", "l2", "squared_error", "mean_squared_error"), "squared"),
    **dict.fromkeys(("mae", "l1", "absolute_error", "mean_absolute_error"), "absolute"),
    "mape": "relative",
}
#: Names of the variables in the formula of a loss, which must have both.
NAMES = ("target", "prediction")
#: The loss of `"auto"` where some rows are outliers, whose weights are almost 0.
WITHOUT_OUTLIERS = "squared without outliers"
#: A function of the targets and the values of a formula, both of shape (n_rows,), that returns the loss of
#: every row, not negative.
Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Smallest residual in the formulas of weights, as a share of the median one, so that no weight is infinite.
_SMALLEST = 0.01
# Residuals at which a user's loss is checked, in standard deviations of the targets.
_TRIED = (1.0, 1e-3, 0.1, 10.0)
# Size below which a user's loss counts as 0 up to rounding, as a share of its median at a residual of one
# standard deviation.
_ROUNDING = 1e-6
#: Smallest precision, so that its logarithm is finite.
LEAST_PRECISION = 1e-250
# Number of nearest rows with whose targets the target of a row is compared.
_N_NEIGHBOURS = 6
# Distance from the median of these targets above which the weight of a row falls, in robust standard
# deviations.
_FAR = 3.0
#: Most rows whose neighbours are determined, and to which distributions of outliers are fitted.
MOST_COMPARED = 5_000
# Smallest ratio of the largest target to the smallest at which errors in proportion to the target can be
# distinguished from equal ones.
_DECADE = 10.0
# Shares of the remaining budget at which the first and the second search without outliers end.
_ENDS = (0.4, 0.65)
# Shares of the budget at which the search by squares ends, and the one by relative errors after it, where
# errors may grow with the targets. Outliers are tested later, because large errors of large targets resemble
# them.
_ENDS_OF_BOTH = (0.3, 0.5)

# Shares of the budget at which the search for a law of all rows ends, and the one or two by group after it.
# The rest of the seconds is for deciding which constants are shared.
_ENDS_BY_GROUP = (0.15, 0.35, 0.75)


class Pass(NamedTuple):
    """One search of a fit, with the loss that weights its rows and the share of the budget where it ends."""

    loss: str | Loss
    until: float
    goes_on: bool  # whether it begins with the programs of the last pass
    by_group: bool = False  # whether every group of rows has its own scale and offset

    def after(self, planned: float, spent: float) -> Pass:
        """Return the pass with its part of the remaining budget, where the one before exceeded its plan."""
        return self._replace(until=spent + (self.until - planned) / (1.0 - planned) * (1.0 - spent))


def passes(loss: str | Loss, y: np.ndarray) -> list[Pass]:
    """Return the searches of a fit with a loss on the targets `y`, shape (n_rows,)."""
    if loss == "auto" and may_be_heteroscedastic(y):
        ends = _ENDS_OF_BOTH
        return [Pass("squared", ends[0], False), Pass("relative", ends[1], False), Pass("best", 1.0, True)]
    if loss in ("auto", "squared", "relative"):
        return [Pass("squared" if loss == "auto" else loss, 1.0, False)]
    first = "neighbours" if _is_robust(loss, y) else "squared"
    return [Pass(first, 0.4, False), Pass(loss, 0.7, True), Pass(loss, 1.0, True)]


def passes_by_group(loss: str | Loss, y: np.ndarray) -> list[Pass]:
    """Return the searches of a fit with groups: one for a law of all rows, the others by group.

    ``"auto"`` means squares, and relative errors after them where errors may grow with the targets. Raises
    ValueError for a loss whose weights depend on the formula.
    """
    if loss not in ("auto", "squared", "relative"):
        raise ValueError(f"loss={loss!r} cannot be used with groups; choose 'squared' or 'relative'.")
    of_all, first, last = _ENDS_BY_GROUP
    if loss == "auto" and may_be_heteroscedastic(y):
        by_group = [Pass("squared", first, False, True), Pass("relative", last, False, True)]
        return [Pass("squared", of_all, False), *by_group]
    loss = "squared" if loss == "auto" else loss
    return [Pass(loss, of_all, False), Pass(loss, last, False, True)]


def passes_without_outliers(spent: float) -> list[Pass]:
    """Return the searches after outliers have been found, with the share `spent` of the budget over."""
    first, second = (spent + share * (1.0 - spent) for share in _ENDS)
    found = [Pass(WITHOUT_OUTLIERS, first, False), Pass(WITHOUT_OUTLIERS, second, True)]
    return [*found, Pass("best", 1.0, True)]


def _is_robust(loss: str | Loss, y: np.ndarray) -> bool:
    """Return whether a loss, other than squared errors, grows more slowly than the square of a residual."""
    if loss in LOSSES:
        return True
    with np.errstate(all="ignore"):
        small, large = (np.mean(_rows_of(loss, y, y + size * y.std())) for size in (1.0, 10.0))
    return bool(large < 10.0**1.5 * small)  # False if it has no value at such predictions


def may_be_heteroscedastic(y: np.ndarray) -> bool:
    """Return whether errors may grow with the targets, which have one sign and vary by a factor of ten."""
    sizes = np.abs(y)
    has_one_sign = y.min() > 0.0 or y.max() < 0.0
    return bool(has_one_sign and sizes.max() >= _DECADE * sizes.min())


def check_loss(loss: str | Loss, y: np.ndarray) -> None:
    """Raise ValueError if a loss cannot be used with some targets."""
    if loss == "relative" and not np.all(y):
        n = int(np.sum(y == 0.0))
        raise ValueError(
            f"loss='relative' needs targets other than 0, and y is 0 in {n} rows; leave these out, or choose "
            "another loss."
        )
    if loss not in LOSSES:
        with np.errstate(all="ignore"):
            _check_tried(loss, y)


def _check_tried(loss: str | Loss, y: np.ndarray) -> None:
    """Raise ValueError if a formula or a callable is no loss on targets of shape (n_rows,), which vary.

    A loss is 0 where the prediction equals the target, and not negative elsewhere. It is evaluated at
    residuals of several sizes, where it may have no value, and at the mean of the targets.
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
    """Return the weights of rows, at most 1, with which squared residuals equal a loss, up to a factor.

    The best formula so far has the values `predicted`; both arrays are of shape (n_rows,). If a callable or a
    formula has no value in a row, such as the logarithm of a negative prediction, the weight is that of a
    prediction nearer to the target. Raises ValueError if there is none with a value, or a loss is negative.
    """
    y = data.y
    if loss == "squared":
        return np.ones(len(y))
    if loss == "neighbours":
        return near_neighbours(data)
    if loss == "relative":
        return np.maximum((np.abs(y).min() / np.abs(y)) ** 2, LEAST_PRECISION)
    residuals = y - predicted
    sizes = np.abs(residuals)
    middle = weighted_median(sizes, data.weights)
    if middle == 0.0:  # most rows are exact, and the others are outliers
        middle = float(sizes.max()) * 1e-6 or 1.0
    sizes = np.maximum(sizes, _SMALLEST * middle)
    if loss == "absolute":
        found = 1.0 / sizes
    elif loss == "huber":
        found = np.minimum(1.0, HUBER * MAD_TO_SIGMA * middle / sizes)
    else:
        values, sizes = _with_values(loss, y, np.copysign(sizes, residuals))
        found = values / sizes**2
    if found.max() == 0.0:  # the loss is 0 for all residuals
        return np.ones(len(y))
    return np.maximum(found / found.max(), LEAST_PRECISION)


def ranks_of(columns: np.ndarray) -> np.ndarray:
    """Return the rank of every value of `columns`, (n_columns, n_rows), in its column: (n_rows, n_columns).

    Equal values are ranked at random, since rows of equal inputs are sorted by their targets.
    """
    order = np.random.default_rng(0).permutation(columns.shape[1])
    ranks = np.empty(columns.T.shape)
    ranks[order] = np.argsort(np.argsort(columns.T[order], axis=0, kind="stable"), axis=0)
    return ranks


def near_neighbours(data: DataSet) -> np.ndarray:
    """Return weights that are low for rows whose target is far from the median of their neighbours' targets.

    All are 1 in tables of more rows than a search or a fit of constants uses.
    """
    y = data.y
    if len(y) > MOST_COMPARED:
        return np.ones(len(y))
    ranks = ranks_of(data.columns)
    n = min(_N_NEIGHBOURS, len(y) - 1)
    _, nearest = cKDTree(ranks).query(ranks, k=n + 1)
    sizes = np.abs(y - np.median(y[nearest[:, 1:]], axis=1))
    limit = _FAR * MAD_TO_SIGMA * weighted_median(sizes, data.weights) or float(sizes.max()) or 1.0
    return np.maximum(np.minimum(1.0, limit / np.maximum(sizes, limit)) ** 4, LEAST_PRECISION)


@lru_cache(maxsize=8)
def _tree_of(text: str) -> Tree:
    """Return the tree of a loss; ValueError if it cannot be read, or lacks one of its two names."""
    if text.lower() in _ELSEWHERE:
        raise ValueError(f"loss={text!r} has another name here; write loss={_ELSEWHERE[text.lower()]!r}.")
    known = f"is neither one of {', '.join(LOSSES)} nor a formula of target and prediction"
    try:
        tree = parse(text, NAMES)
    except ValueError as error:
        raise ValueError(f"loss={text!r} {known}. {error}") from error
    if missing := [name for name in NAMES if name not in leaves(tree)]:
        raise ValueError(
            f"loss={text!r} {known}: it lacks {missing[0]}; write one such as 'abs(target - prediction)'."
        )
    return tree


def _rows_of(loss: str | Loss, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the values of a formula or of a callable for the rows, shape (n_rows,)."""
    if isinstance(loss, str):
        return evaluate(_tree_of(loss), dict(zip(NAMES, (y, predicted))))
    # Its exceptions pass through: one may come from a timer by which the user limits the time of a fit.
    values = np.asarray(loss(y.copy(), predicted.copy())).astype(np.float64, casting="same_kind")
    if values.shape != y.shape:
        raise ValueError(
            f"loss returned an array of shape {values.shape} for {len(y)} rows; it must return the loss of "
            "every row, and not their mean."
        )
    return values


def _with_values(loss: str | Loss, y: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each row, and its residual, which is halved until the loss has a value."""
    values = _rows_of(loss, y, y - residuals)
    for _ in range(np.finfo(np.float64).nmant):  # until the prediction is the target, up to rounding
        without = ~np.isfinite(values)
        if not without.any():
            break
        residuals = np.where(without, 0.5 * residuals, residuals)
        values = _rows_of(loss, y, y - residuals)
    if not (np.isfinite(values).all() and values.min() >= 0.0):
        raise ValueError("loss has values that are negative or not finite; mend the function or the formula.")
    return values, residuals


def residual_bits(loss: str | Loss, data: DataSet, predicted: np.ndarray) -> float:
    """Return the bits of the residuals of a formula under normal noise, so that losses can be compared.

    The standard deviation of the noise is the same in all rows, or for ``"relative"`` in proportion to the
    values of the formula, `predicted` of shape (n_rows,). If it were in proportion to the target, a formula
    that is 0 everywhere would miss every target, however small, by one standard deviation.
    """
    shares = data.weights / data.weights.sum()
    scale = np.abs(predicted) if loss == "relative" else np.ones(len(predicted))
    with np.errstate(all="ignore"):
        square = np.sum(shares * ((data.y - predicted) / scale) ** 2)
        bits = data.n_effective * (0.5 * np.log2(square) + np.sum(shares * np.log2(scale)))
    return float(bits) if np.isfinite(square) and scale.min() > 0.0 else np.inf
