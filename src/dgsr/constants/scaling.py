"""Linear scaling written out: from a program f and its fit a f(x) + b to whole programs."""

from __future__ import annotations

import numpy as np

from dgsr.constants.fitting import Fit, fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.programs.library import Library

#: Number of tokens that slope and intercept add to a program.
N_TOKENS = 4
#: Number of constants that slope and intercept add to a program.
N_CONSTANTS = 2
# For each of f, a*f, f + b and a*f + b whether it has a slope, and whether it has an intercept.
_VARIANTS = ((False, False), (True, False), (False, True), (True, True))
# Most steps of the fit of each variant. The search fits those that enter the archive further.
_STEPS = 5


def check_can_scale(library: Library) -> None:
    """Raise ValueError if a library cannot write the scale and the offset of a program."""
    missing = [name for name in ("add", "mul") if name not in library.index]
    if library.has_constants and missing:
        raise ValueError(
            f"library={library.name!r} has constants but not {' and '.join(missing)}, which write the scale "
            "and the offset of a formula; add what is missing, or leave out the constants."
        )


def written_out(population: Population, fit: Fit, data: DataSet) -> tuple[Population, np.ndarray]:
    """Return f, a*f, f + b and a*f + b of every program as programs, and their NMSE (4 n_programs,).

    If the law has no slope or intercept, the shorter variant fits as well and is preferred for its length.
    The arrays are wider by `N_TOKENS` and `N_CONSTANTS`. `fit` is a scaled fit of the population on `data`;
    its library has ``add``, ``mul`` and ``const``.
    """
    index = population.library.index
    add, mul, const = index["add"], index["mul"], index["const"]
    (n, width), own_width = population.tokens.shape, population.constants.shape[1]
    own_constants = population.is_constant.sum(axis=1)
    variants = []
    for has_slope, has_intercept in _VARIANTS:
        prefix = [add] * has_intercept + [mul, const] * has_slope
        at = len(prefix)
        tokens = np.zeros((n, width + N_TOKENS), dtype=np.int64)
        tokens[:, :at] = prefix
        tokens[:, at : at + width] = population.tokens
        lengths = population.lengths + at
        constants = np.ones((n, own_width + N_CONSTANTS))
        constants[:, has_slope : has_slope + own_width] = population.constants
        if has_slope:
            constants[:, 0] = fit.slope
        if has_intercept:
            tokens[np.arange(n), lengths] = const
            constants[np.arange(n), own_constants + has_slope] = fit.intercept
            lengths = lengths + 1
        variants.append(Population(population.library, tokens, lengths, constants))
    programs = Population.concatenate(variants)
    # Without a slope or an intercept, other constants inside f fit best.
    losses = fit_constants(programs, data, scaled=False, n_iterations=_STEPS)
    return programs, losses.nmse
