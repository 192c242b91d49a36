"""The meaning of the weights of rows, as precisions or as shares, by the residuals of a front."""

from __future__ import annotations

import numpy as np

from dgsr.data import Prepared
from dgsr.data.dataset import SOME_ROWS, evenly_spaced
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits
from dgsr.expressions.trees.simple_numbers import ROUNDING

# Exponents p that are compared: the noise of a measurement of weight w has a variance in proportion to w**-p.
_EXPONENTS = np.linspace(0.0, 1.0, 11)


def noise_exponent(rows: Prepared, programs: Population, precision: np.ndarray) -> float:
    """Return the exponent p of a noise whose variance is in proportion to w**-p.

    It is 1 where the weights are inverse variances of the noise, and 0 where the noise is the same in all
    rows, so that the weights are shares. The exponent with the shortest description of formula and residuals,
    over all programs, is returned; the formula of the lowest loss may overfit heavy rows.

    The `rows` have the weights that were given, the `programs` are the front of a search in its coordinates,
    and `precision`, (n_rows,), has the factors of the squared residuals by the loss of the search.

    Reference: Harvey, 1976 (multiplicative heteroscedasticity).
    """
    data = rows.data
    of_each = data.weights / data.counts
    if len(programs) == 0 or np.ptp(of_each) <= ROUNDING * of_each.max():
        return 0.0
    order = np.argsort(-of_each, kind="stable")
    # The heaviest rows are used, and some of the others.
    others = order[SOME_ROWS:]
    spread = evenly_spaced(len(others), min(SOME_ROWS, len(others)))
    some = np.concatenate([order[:SOME_ROWS], others[spread]])
    counts, own, n = data.counts[some], of_each[some], data.counts[some].sum()
    columns = rows.coordinates.measured(data.columns[:, some])
    # The residuals of a formula with a constant for every row are rounding, and no measure of the noise.
    floor = n * data.rounding_nmse * data.variance
    bits = structure_bits(programs.library, programs.tokens, programs.lengths)
    with np.errstate(all="ignore"):
        squares = (programs.predict(columns.T) - data.y[some]) ** 2 * precision[some]
        # Bits of normal residuals, without terms that are the same for all programs and exponents.
        sums = np.maximum(squares @ (counts * own ** _EXPONENTS[:, None]).T, floor)
        lengths = bits[:, None] + 0.5 * n * np.log2(sums / n)
        lengths -= 0.5 * _EXPONENTS * (counts @ np.log2(own))
    lengths[~np.isfinite(lengths)] = np.inf
    return float(_EXPONENTS[np.unravel_index(lengths.argmin(), lengths.shape)[1]])
