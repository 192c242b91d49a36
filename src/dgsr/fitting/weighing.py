"""What the weights of rows say of their noise, judged by the residuals of what a search has found."""

from __future__ import annotations

import numpy as np

from dgsr.data import Prepared
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits

# Exponents p that are tried: the noise of a measurement of weight w has a variance in proportion to w**-p.
_EXPONENTS = np.linspace(0.0, 1.0, 11)
# Rows that are looked at: the heaviest, and as many of the others.
_N_ROWS = 1_000
# Relative differences between weights that are rounding.
_ROUNDING = 1e-12


def noise_exponent(rows: Prepared, programs: Population, precision: np.ndarray | None = None) -> float:
    """Return the exponent p of a noise whose variance is in proportion to w**-p.

    It is 1 where the weights are one over the variance of the noise, and 0 where the noise is the same in all
    rows, for which the weights are shares. Among these it is that of the shortest description of formula and
    residuals together, over all programs. See `DataSet.with_noise_exponent` for what follows from it.

    Parameters
    ----------
    rows : Prepared
        The rows with the weights that were given.
    programs : Population
        The front of a search, in its coordinates. Its best formula may be closer to heavy rows by overfitting
        them, so it does not decide alone.
    precision : ndarray of shape (n_rows,), optional
        What the loss of the search multiplies the squares of the residuals by.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Harvey, 1976 (multiplicative heteroscedasticity).
    """
    data = rows.data
    of_each = data.weights / data.counts
    if len(programs) == 0 or np.ptp(of_each) <= _ROUNDING * of_each.max():
        return 0.0
    order = np.argsort(-of_each, kind="stable")
    others = order[_N_ROWS:]
    spread = np.unique(np.linspace(0, len(others) - 1, min(_N_ROWS, len(others))).astype(np.int64))
    some = np.concatenate([order[:_N_ROWS], others[spread]])
    counts, own, n = data.counts[some], of_each[some], data.counts[some].sum()
    columns = rows.coordinates.measured(data.columns[:, some])
    # A formula with a constant for every row leaves rounding, which says nothing of the noise.
    floor = n * data.rounding_nmse * data.variance
    bits = structure_bits(programs.library, programs.tokens, programs.lengths)
    with np.errstate(all="ignore"):
        squares = (programs.predict(columns.T) - data.y[some]) ** 2
        squares *= 1.0 if precision is None else precision[some]
        # Of normal residuals; sizes that all programs and exponents share are left out.
        sums = np.maximum(squares @ (counts * own ** _EXPONENTS[:, None]).T, floor)
        lengths = bits[:, None] + 0.5 * n * np.log2(sums / n)
        lengths -= 0.5 * _EXPONENTS * (counts @ np.log2(own))
    lengths[~np.isfinite(lengths)] = np.inf
    return float(_EXPONENTS[np.unravel_index(lengths.argmin(), lengths.shape)[1]])
