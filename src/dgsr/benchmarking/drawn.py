"""Sets of problems that are drawn from a prior of equations, of any number and with any seed.

Problem i of a set depends only on the seed and i, so that a larger set begins with the smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library, get_library
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior
from dgsr.problems.problem import Sample

#: Prefix of the names of drawn sets.
PREFIX = "drawn:"
#: Number of noise-free rows of the test.
N_TEST = 1_000
# Smallest variance of y on the rows of the fit, relative to all rows. With less they do not show the law.
_LEAST_VARIANCE = 1e-6
# Lowest and highest rank correlation of a correlated column with a column that matters.
_CORRELATIONS = 0.5, 0.95
# Standard deviation of the noise of a noisy copy, in standard deviations of the column that is copied.
_NOISE_OF_COPIES = 0.1
# Parts of the seeds of the noise, of the order of the columns, and of the columns that are related to others,
# besides the seed of the set and the number of the problem.
_NOISE, _ORDER, _RELATED = (int.from_bytes(word, "big") for word in (b"noise", b"order", b"related"))


class DrawnSet(NamedTuple):
    """The distribution of the equations of a set."""

    library: str
    prior: Callable[[Library], Prior]
    constraints: Constraints
    n_columns: int | None = None  # columns of every problem; None for the numbers of `_n_columns`
    rows: tuple[int, int] = (20, 200)  # fewest and most of a fit; the logarithm of their number is uniform
    n_variables: range | None = None  # columns that matter; if given, half of the others are related to these


def _default(library: Library) -> Prior:
    return Prior.default_for(library, library.n_variables)


def _laws(library: Library) -> Prior:
    return replace(Prior.varied_for(library, library.n_variables, laws=1.0), transformed=0.0)


def _transformed(library: Library) -> Prior:
    return replace(Prior.varied_for(library, library.n_variables), transformed=1.0)


#: The sets by the names of their priors. The data are drawn without the noise of the prior.
DRAWN_SETS: dict[str, DrawnSet] = {
    "koza": DrawnSet("koza", _default, Constraints()),
    "koza-d2": DrawnSet("koza", _default, Constraints(), n_columns=2),
    "koza-d5": DrawnSet("koza", _default, Constraints(), n_columns=5),
    "physics": DrawnSet("physics", _default, Constraints()),
    "laws": DrawnSet("physics", _laws, Constraints()),
    "wide": DrawnSet("physics", _laws, Constraints(), n_columns=30),
    **{
        f"wide-{n}": DrawnSet("physics", _laws, Constraints(), n, rows=(100, 1_000), n_variables=range(3, 7))
        for n in (12, 30, 100)
    },
    "transformed": DrawnSet("physics", _transformed, Constraints(linear_scaling=True)),
}


@dataclass(frozen=True, eq=False)
class DrawnProblem:
    """An equation of a prior, and its data, which the seed and the number of the set determine.

    The equation need not depend on all columns. In ``"transformed"`` it lacks the scale and the offset of y,
    and in some laws the factor of a change of units. The rows of the fit and of the test have one
    distribution and no noise.
    """

    set: str  # "drawn:" and a key of `DRAWN_SETS`
    seed: int
    number: int
    truth: Expression
    X: np.ndarray  # (n_rows + 1,000, n_columns)
    y: np.ndarray  # (n_rows + 1,000,)
    max_length: int  # most tokens of an equation of the prior

    @property
    def name(self) -> str:
        return _name(self.set.removeprefix(PREFIX), self.seed, self.number)

    @property
    def library(self) -> str:
        return self.truth.library.name

    @property
    def n_rows(self) -> int:
        return len(self.y) - N_TEST

    @property
    def n_columns(self) -> int:
        return self.X.shape[1]

    @property
    def n_variables(self) -> int:
        """Number of columns on which the equation depends."""
        return _n_variables(self.truth)

    def sample(self, noise: float = 0.0) -> Sample:
        """Return the data.

        `noise` is the standard deviation of the Gaussian noise on `y_train`, in standard deviations of
        `y_train`. All levels have the same draws, which depend on the seed of the set and the number of the
        problem. The test data have no noise.
        """
        n = self.n_rows
        y_train = self.y[:n]
        if noise > 0.0:
            draws = np.random.default_rng((self.seed, self.number, _NOISE)).normal(size=n)
            y_train = y_train + noise * np.std(y_train) * draws
        return Sample(self.X[:n], y_train, self.X[n:], self.y[n:])


def draw_problems(
    prior_name: str, n: int, seed: int, names: Iterable[str] | None = None
) -> list[DrawnProblem]:
    """Draw the first `n` problems of a set.

    `prior_name` is a key of `DRAWN_SETS`, and `seed` that of the set, from 0 to 2**32 - 1; `names` are the
    names of some of these problems, all by default. ValueError if there is no such prior or problem, or the
    seed or the number is out of its range.

    Notes
    -----
    Of each 21 consecutive problems, 20 have 1, 2, 3, 4, 5, 1, ... columns, and the last has 6, 7 or 8;
    problems of ``"koza-d2"``, ``"koza-d5"`` and ``"wide"`` have 2, 5 and 30, of which an equation may have
    only a few. The logarithm of the number of rows is uniform between log(20) and log(200). An equation is
    drawn again if its y varies too little on all rows (by the rule of the prior) or on the rows of the fit.

    Problems of ``"wide-12"``, ``"wide-30"`` and ``"wide-100"`` have as many columns and 100 to 1,000 rows. A
    law that depends on fewer than three or more than six columns is drawn again. Of the other columns a third
    are correlated with a column that matters, with a coefficient of the ranks that is uniform between 0.5 and
    0.95; a sixth are copies of a column that matters with Gaussian noise of a tenth of its standard
    deviation; and the rest are drawn as in ``"wide"``.
    """
    if prior_name not in DRAWN_SETS:
        raise ValueError(
            f"prior_name={prior_name!r} is unknown; choose from {', '.join(DRAWN_SETS)} "
            f"({', '.join(PREFIX + name for name in DRAWN_SETS)} on the command line)."
        )
    if n < 1:
        raise ValueError(f"n={n} must be at least 1.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed} must be at least 0 and below 2**32.")
    numbers = {name: number for number, name in enumerate(problem_names(prior_name, n, seed))}
    names = list(numbers) if names is None else list(names)
    strangers = [name for name in names if name not in numbers]
    if strangers:
        raise ValueError(
            f"names={strangers} are not among {next(iter(numbers))} and the {n - 1} that follow it; "
            "draw more, or with the seed that is in the name."
        )
    return [_draw(prior_name, seed, numbers[name]) for name in names]


def problem_names(prior_name: str, n: int, seed: int) -> list[str]:
    """Return the names of the first `n` problems of a set, without drawing them."""
    return [_name(prior_name, seed, number) for number in range(n)]


def _name(prior_name: str, seed: int, number: int) -> str:
    return f"{prior_name}-drawn-{seed}-{number:03d}"


def _draw(prior_name: str, seed: int, number: int) -> DrawnProblem:
    library_name, prior_for, constraints, n_columns, rows, n_variables = DRAWN_SETS[prior_name]
    library = get_library(library_name, n_columns or _n_columns(number))
    prior = replace(prior_for(library), noise=None)
    n_rows = round(np.exp(np.random.default_rng((seed, number)).uniform(*np.log(rows))))
    state = new_state(seed, number)
    while True:
        drawn = prior.draw(1, n_rows + N_TEST, library.n_variables, library, constraints, state)
        y, n_used = drawn.y[0], _n_variables(drawn.programs[0])
        if n_variables is not None and n_used not in n_variables:
            continue
        if np.var(y[:n_rows]) > _LEAST_VARIANCE * np.var(y):
            break
    if n_variables is not None:
        _relate(drawn.X[0], n_used, np.random.default_rng((seed, number, _RELATED)))
    # Equations of the prior depend on the first columns, so the columns are put into a random order.
    order = np.random.default_rng((seed, number, _ORDER)).permutation(library.n_variables)
    drawn = drawn.reordered(order[None])
    truth, X, y = drawn.programs[0], drawn.X[0], drawn.y[0]
    return DrawnProblem(PREFIX + prior_name, seed, number, truth, X, y, constraints.max_length)


def _n_variables(equation: Expression) -> int:
    return len(np.unique(equation.tokens[equation.tokens >= equation.library.first_variable]))


def _relate(X: np.ndarray, n_variables: int, rng: np.random.Generator) -> None:
    """Relate half of the columns that do not matter to columns that do, in place.

    The first `n_variables` columns of `X` (n_rows, n_columns) matter. The next third of the others keep their
    values in an order that correlates them, and a further sixth become noisy copies.

    References
    ----------
    Iman, Conover, Communications in Statistics B 11, 1982: values in the order of correlated normal scores.
    """
    n_rows, n_others = len(X), X.shape[1] - n_variables
    first_copy = n_variables + round(n_others / 3)
    for c in range(n_variables, first_copy + round(n_others / 6)):
        source, draws = X[:, rng.integers(n_variables)], rng.normal(size=n_rows)
        if c >= first_copy:
            X[:, c] = source + _NOISE_OF_COPIES * np.std(source) * draws
            continue
        # Correlation of two normal variables whose ranks have the drawn one.
        r = 2.0 * np.sin(np.pi / 6.0 * rng.uniform(*_CORRELATIONS))
        # Equal values have equal ranks: ranks by the order of the rows would tell the fit from the test.
        scores = ndtri((rankdata(source) - 0.5) / n_rows)
        X[np.argsort(r * scores + np.sqrt(1.0 - r**2) * draws), c] = np.sort(X[:, c])


def _n_columns(number: int) -> int:
    """Return 1 to 5 in turn for the first 20 of 21 consecutive problems, and 6 to 8 in turn for the last."""
    cycle, place = divmod(number, 21)
    return 1 + place % 5 if place < 20 else 6 + cycle % 3
