"""How many measurements weighted rows amount to, judged by the residuals of what a search has found."""

from __future__ import annotations

import numpy as np

from dgsr.expressions.formula_prior import structure_bits
from dgsr.population import DataSet, Population

# Exponents p that are tried: the noise of a measurement of weight w has a variance in proportion to w**-p.
_EXPONENTS = np.linspace(0.0, 1.0, 11)
# Most rows that are looked at.
_MOST_ROWS = 2_000


def effective_number(data: DataSet, programs: Population) -> float:
    """Return the effective number of measurements of weighted rows.

    Where the weights are one over the variance of the noise, all measurements say equally much of a formula,
    and their number counts. Where the noise is the same in all rows, the effective number is Kish's: a few
    heavy rows have most of the say. Between these, the exponent p of a variance in proportion to w**-p is
    that of the shortest description of formula and residuals together, over all programs.

    Parameters
    ----------
    data : DataSet
        The rows as given, in the coordinates of the search.
    programs : Population
        The front of a search, whose best formula may be closer to heavy rows by overfitting them.

    References
    ----------
    Harvey, 1976 (multiplicative heteroscedasticity); Kish, 1965.
    """
    of_each = data.weights / data.counts
    if len(programs) == 0 or of_each.min() == of_each.max():
        return data.n_effective
    rows = data.evenly_spaced(_MOST_ROWS)
    own, n = rows.weights / rows.counts, rows.counts.sum()
    bits = structure_bits(programs.library, programs.tokens, programs.lengths)
    with np.errstate(all="ignore"):
        squares = (programs.predict(rows.columns.T) - rows.y) ** 2
        # Of normal residuals; sizes that all programs and exponents share are left out.
        sums = squares @ (rows.counts * own ** _EXPONENTS[:, None]).T
        lengths = bits[:, None] + 0.5 * n * np.log2(sums / n)
        lengths -= 0.5 * _EXPONENTS * (rows.counts @ np.log2(own))
    lengths[~np.isfinite(lengths)] = np.inf
    exponent = _EXPONENTS[np.unravel_index(lengths.argmin(), lengths.shape)[1]]
    say = of_each ** (1.0 - exponent)
    return float((data.counts @ say) ** 2 / (data.counts @ say**2))
