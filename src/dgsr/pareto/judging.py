"""The criteria for the formulas of a front: losses, lengths in bits, and behaviour between rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.coordinates import without_origins
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.formulas.shape_proof import keeps_shape
from dgsr.expressions.formulas.soundness import pure_columns, unseen_waves, weak_points
from dgsr.expressions.programs.shape import ShapeConstraints
from dgsr.expressions.programs.units import Units
from dgsr.pareto.archive import LEAST_GAIN

# Largest loss on a sample of rows, as a multiple of that of a shorter formula, that may be the lower one on
# all.
_MOST_ABOVE = 1.2
# Bits that a formula pays for each weak point in comparison with formulas that have none; without it a front
# of 14 measurements had formulas with five such points.
_BITS_OF_WEAK_POINT = 20.0
# Bits of a sine or cosine of which the rows show less than half a period. Prices from 0 to 20 do as well.
_BITS_OF_UNSEEN_WAVE = 6.0
# Bits of the claim that there is no relation, where 2 to 6 do as well, and of the claim that a column is a
# pure number, where 3 to 10 do. To name a common form takes about as many.
_BITS_OF_CLAIM = 4.0


def undominated(
    order: Sequence[int],
    losses: np.ndarray,
    tolerance: float,
    error: Callable[[int], float] | None = None,
) -> list[int]:
    """Return the formulas, in rising order of length, whose error is lower than those of all before them.

    The error is the loss, or what `error` returns, which is no lower, and asked for where it may matter.
    """
    found, best = list[int](), np.inf
    for i in order:
        if losses[i] < (1.0 - LEAST_GAIN) * best and best > tolerance:
            own = float(losses[i]) if error is None or losses[i] <= tolerance else error(i)
            if own < (1.0 - LEAST_GAIN) * best:
                best = own
                found.append(i)
    return found


def promising(
    expressions: Sequence[Expression],
    sample: DataSet,
    data: DataSet,
    units: Units | None = None,
    is_over: Callable[[], bool] = lambda: False,
    shape: ShapeConstraints | None = None,
) -> tuple[list[Expression], np.ndarray]:
    """Return the formulas that may be on the front of all rows, and their NMSE on all rows.

    A formula is excluded if it fits the sample clearly worse than a shorter one without weak points that is
    finite on all rows. Formulas are evaluated in the order of their descriptions until time is over, since a
    hundred formulas on a million rows would take seconds.
    """
    losses, _ = judged(expressions, sample, units, shape=shape)
    bits = np.array([length_on(e, sample) for e in expressions])
    nmse = dict[int, float]()
    sound = list[int]()
    for i in np.lexsort((bits, sample.bits_of_residuals(losses) + bits)).tolist():
        if nmse and is_over():
            break
        best = min((losses[j] for j in sound if bits[j] <= bits[i]), default=np.inf)
        if best < np.inf and not losses[i] < _MOST_ABOVE * best:
            continue
        nmse[i] = nmse_of([expressions[i]], data)[0]
        if np.isfinite(nmse[i]) and not n_weak_points(expressions[i], sample):
            sound.append(i)
    return [expressions[i] for i in sorted(nmse)], np.array([nmse[i] for i in sorted(nmse)])


def length_on(expression: Expression, data: DataSet) -> float:
    """Return the bits by which a formula is compared: its description length without origins, and penalties.

    There are penalties for a wave of which the rows show less than half a period, for a constant formula, and
    for a function of a column without a factor, which makes the column a pure number.
    """
    is_number, paid = len(expression.tokens) == len(expression.constants), 0.0
    if isinstance(expression, GroupedExpression):
        paid = expression.by_group.bits
        expression = expression.rounded
    from_zero = without_origins(expression, data.columns)
    paid += _BITS_OF_CLAIM * (is_number + pure_columns(from_zero))
    paid += _BITS_OF_UNSEEN_WAVE * unseen_waves(expression, data.columns)
    return description_length(from_zero) + paid


def n_weak_points(expression: Expression, data: DataSet) -> int:
    """Return the number of weak points of a formula, or of that of a new group, between the rows."""
    if isinstance(expression, GroupedExpression):
        expression = expression.typical
    return len(weak_points(expression, data.columns))


def nmse_of(expressions: Sequence[Expression], data: DataSet) -> np.ndarray:
    """Return the NMSE of formulas of one library, shape (n_expressions,)."""
    found = Population.from_expressions(expressions).nmse(data)
    for i, expression in enumerate(expressions):
        if isinstance(expression, GroupedExpression):
            residuals = expression(data.columns.T) - data.y
            nmse = np.mean(data.weights * residuals**2) / data.variance
            found[i] = nmse if np.isfinite(nmse) else np.inf
    return found


def judged(
    expressions: Sequence[Expression],
    data: DataSet,
    units: Units | None,
    nmse: np.ndarray | None = None,
    shape: ShapeConstraints | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses by which formulas are compared, and their factors for units, shape (n_expressions,).

    `nmse` is the NMSE of the formulas on `data`, if it is known. Formulas that break shape constraints have
    an infinite loss.
    """
    programs = Population.from_expressions(expressions)
    losses, handicaps = nmse_of(expressions, data) if nmse is None else nmse, np.ones(len(programs))
    if units is not None:
        library = programs.library
        handicaps = units.handicaps(units.violations(*programs.arrays, library, by_value=True))
        losses = np.where(np.isfinite(handicaps), losses * handicaps, np.inf)
    if shape is not None:
        finite = np.isfinite(losses).tolist()
        kept = [is_finite and keeps_shape(e, shape) for e, is_finite in zip(expressions, finite)]
        losses = np.where(kept, losses, np.inf)
    return losses, handicaps


def without_long_exact_fits(
    losses: np.ndarray, bits: np.ndarray, data: DataSet, tolerance: float
) -> np.ndarray:
    """Return losses, raised above the tolerance for exact fits that are too long, shape (n_expressions,).

    A formula with more bits than it explains of the targets is no shorter than a list of them.
    """
    is_long = (losses <= tolerance) & (bits > data.bits_explained(losses))
    return np.where(is_long, max(data.digits_nmse, np.nextafter(tolerance, np.inf)), losses)


def are_supported(
    expressions: Sequence[Expression], losses: np.ndarray, bits: np.ndarray, data: DataSet, tolerance: float
) -> np.ndarray:
    """Return which formulas the rows support, also by their behaviour between rows, (n_expressions,)."""
    n_weak = np.zeros(len(losses))
    finite = np.flatnonzero(np.isfinite(losses)).tolist()
    n_weak[finite] = [n_weak_points(expressions[i], data) for i in finite]
    totals = data.bits_of_residuals(losses) + bits
    limit = totals[n_weak == 0].min(initial=np.inf)
    return (n_weak == 0) | (losses <= tolerance) | (totals + _BITS_OF_WEAK_POINT * n_weak < limit)
