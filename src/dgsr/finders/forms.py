"""Fits of the common forms to every column: y = s f(x) + t, where f is a form with free constants.

Nonlinear least squares begins at many points, since a rate, a location or a period far from the true one
leads to a local optimum. The scale s and the offset t follow from linear least squares in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dgsr.constants.fitting import Fit, fit_constants
from dgsr.constants.scaling import written_out
from dgsr.constants.uncertainty import uncertainty_of
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.common_forms import COMMON_FORMS
from dgsr.expressions.formulas.description_length import BITS_OF_CONSTANT
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION
from dgsr.finders.finder import Deadline, Found, Problem, never
from dgsr.finders.terms import LEAST_ROWS_PER_CONSTANT, WIDEST_TABLE, Term, columns_of, population_of

# Most starting points of a form in one column, 0.02 to 0.06 s for all forms, and in all columns together.
_STARTS = 64
_STARTS_OF_ALL = 320
# Most rows, iterations, and fits of a form and column that go on, of the first and of the second fit.
_FITS = ((60, 15, 3), (1_000, 40, 1))
# Programs that are fitted between two readings of the clock, in some hundredths of a second.
_AT_ONCE = 500
# Largest range of the angle of a sine over the rows, in radians: twenty periods.
_FASTEST = 40.0 * np.pi
# NMSE below which a form enters the search. Forms that explain less mostly fit noise.
_CLOSE = 0.1
# Most formulas that are returned.
_BEST_FORMULAS = 12


class _Starts:
    """Starting values of the constants of functions of a column x, in arrays of shape (n,)."""

    def __init__(self, x: np.ndarray, n: int) -> None:
        # A Latin hypercube: each of the nine numbers lies once in each of n equal parts of its range.
        rng = np.random.default_rng(0)
        shares = (rng.permuted(np.tile(np.arange(n), (9, 1)), axis=1) + rng.random((9, n))) / n
        self.ones = np.ones(n)
        low, high = float(x.min()), float(x.max())
        self._x, extent = x, high - low
        signs = np.where(shares[0] < 0.5, -1.0, 1.0)
        self._share = shares[1]
        self._span = signs * 0.2 * 200.0 ** shares[1]  # range of a*x over the rows
        self.rate = self._span / extent
        self.decay = -np.abs(self.rate)
        self.other_rate = np.sign(self.rate) * 0.2 * 200.0 ** shares[2] / extent
        self.frequency = (0.5 + min(_FASTEST, 1.5 * len(x)) * shares[3]) / extent
        self.phase = 2.0 * np.pi * shares[4]
        self.place = np.quantile(x, shares[5])
        self.width = extent * 10.0 ** (2.0 * shares[6] - 1.5)
        # The shift is added to x where the sum may not be 0: its pole is below all x or above them.
        distance = extent * 10.0 ** (4.0 * shares[7] - 2.5)
        self.shift = np.where(shares[8] < 0.6, distance - low, -high - distance)
        self.power = 6.0 * shares[6] - 3.0
        self.growth = np.abs(self.power) + 0.2
        self.ratio = signs * 10.0 ** (2.0 * shares[7] - 1.0)

    def of_inverse(self, shift: np.ndarray | float = 0.0) -> np.ndarray:
        """Return starting values of a in exp(a/(shift + x))."""
        inverse = 1.0 / ((shift * self.ones)[:, None] + self._x)
        return self._span / np.ptp(inverse, axis=1)

    def curvature(self) -> np.ndarray:
        """Return starting values of a in 1 + a*x**2, with which it is positive on the rows."""
        return np.where(self._span < 0.0, -self._share / np.max(self._x**2), 1.0 / self.width**2)

    def saturating(self, power: np.ndarray) -> np.ndarray:
        """Return starting values of a in a + x**power."""
        return np.abs(self.place) ** power

    def switching(self, rate: np.ndarray) -> np.ndarray:
        """Return starting values of a in a + exp(rate*x)."""
        return np.exp(rate * self.place)


#: Starting values of a, b and c for each form. A form that equals another one plus an offset has none.
_BEGINNINGS: dict[str, Callable[[_Starts], tuple[np.ndarray, ...]]] = {
    "x**a": lambda s: (s.power,),
    "(a + x)**b": lambda s: (s.shift, s.power),
    "exp(a*x)": lambda s: (s.rate,),
    "exp(a*x**b)": lambda s: (np.sign(s.rate) / s.saturating(s.growth), s.growth),
    "exp(a/x)": lambda s: (s.of_inverse(),),
    "x**a*exp(b/x)": lambda s: (s.power, s.of_inverse()),
    "exp(a/(b + x))": lambda s: (s.of_inverse(s.shift), s.shift),
    "1/(a + x)": lambda s: (s.shift,),
    "x/(a + x)": lambda s: (s.shift,),
    "1/(a + x**2)": lambda s: (s.width**2,),
    "x**2/(a + x**2)": lambda s: (s.width**2,),
    "sqrt(1 + a*x**2)": lambda s: (s.curvature(),),
    "1/sqrt(1 + a*x**2)": lambda s: (s.curvature(),),
    "1/(a + x**b)": lambda s: (s.saturating(s.power), s.power),
    "x/(a + x**b)": lambda s: (s.saturating(s.growth), s.growth),
    "x/(a + b*x + x**2)": lambda s: (s.width**2, np.abs(s.place)),
    "1/(a + exp(b*x))": lambda s: (s.switching(s.rate), s.rate),
    "1/(a + exp(b/x))": lambda s: (np.sign(s.phase - np.pi), s.of_inverse()),
    "tanh(a*x)": lambda s: (s.rate,),
    "exp(a*exp(b*x))": lambda s: (np.sign(s.phase - np.pi) / s.switching(s.rate), s.rate),
    "(a - exp(b*x))**c": lambda s: (s.ones, s.decay, s.growth),
    "x*exp(a*x)": lambda s: (s.rate,),
    "x**a*exp(b*x)": lambda s: (s.power, s.rate),
    "log(x)": lambda s: (),
    "log(a + x)": lambda s: (s.shift,),
    "log(a + exp(b*x))": lambda s: (s.switching(s.rate), s.rate),
    "exp(a*x**2)": lambda s: (-0.5 / s.width**2,),
    "exp(a*(b + x)**2)": lambda s: (-0.5 / s.width**2, -s.place),
    "exp(a*(b + log(x))**2)": lambda s: (-np.abs(s.ratio), -np.log(s.place)),
    "1/(a + (b + x)**2)": lambda s: (s.width**2, -s.place),
    "sin(a*x)": lambda s: (s.frequency,),
    "sin(a*x + b)": lambda s: (s.frequency, s.phase),
    "exp(a*x)*sin(b*x)": lambda s: (s.decay, s.frequency),
    "exp(a*x)*sin(b*x + c)": lambda s: (s.decay, s.frequency, s.phase),
    "exp(a*x) + b*exp(c*x)": lambda s: (s.rate, s.ratio, s.other_rate),
    "exp(a*x) + b*x": lambda s: (s.rate, s.ratio * np.abs(s.rate)),
    "(a + exp(b*x))**2": lambda s: (-s.switching(s.rate), s.rate),
    "a*x + abs(b + x)": lambda s: (s.ratio, -s.place),
}


class Curves(NamedTuple):
    """Common forms fitted to columns. The programs are without their scale and offset."""

    programs: Population
    fit: Fit
    n_begun: int  # number of starting points that were fitted


class CommonForms:
    """Finder of the common forms of a column, which stores their fits for the end of the search."""

    def __init__(self) -> None:
        self._data: DataSet | None = None
        self._curves: Curves

    def __call__(self, problem: Problem, deadline: Deadline) -> Found:
        """Find the forms that explain most of the variance, without their scales and offsets."""
        self._data, self._curves = problem.data, fitted_curves(problem, deadline)
        curves = self._curves
        close = curves.programs[curves.fit.nmse < _CLOSE]
        return Found(close, False, CANDIDATES_PER_EVALUATION * curves.n_begun)

    def whole(self, problem: Problem, deadline: Deadline) -> Found:
        """Find the best forms as complete formulas; they are fitted again if the rows have changed."""
        n_examined = 0
        if self._data is None or not all(map(np.array_equal, self._data[:3], problem.data[:3])):
            n_examined = self(problem, deadline).n_examined
        return Found(curve_formulas(self._curves, problem, deadline), True, n_examined)


def fitted_curves(problem: Problem, deadline: Deadline = never) -> Curves:
    """Return the common forms of the first twelve columns, fitted to the data, those that fit best first."""
    data, library = problem.data, problem.library
    columns = columns_of(problem.grammar)[:WIDEST_TABLE]
    begun = list[Term]()
    for (token,) in columns:
        x = data.columns[token - library.first_variable]
        if np.ptp(x) > 0.0:
            begun += _begun(token, _Starts(x, min(_STARTS, _STARTS_OF_ALL // len(columns))), library)
    programs = population_of(library, begun)
    is_valid = problem.valid.terms(programs) & np.isfinite(programs.constants).all(axis=1)
    programs = programs[is_valid]
    n_begun = len(programs)
    fit = Fit(np.zeros(0), np.zeros(0), np.zeros(0))
    for n_rows, steps, n in _FITS:
        if len(programs):
            programs, fit = _fitted(programs, data.evenly_spaced(n_rows), steps, deadline)
            best = _best_of_each(programs, fit.nmse, n)
            programs, fit = programs[best], Fit(*(values[best] for values in fit))
    return Curves(programs, fit, n_begun)


def _fitted(programs: Population, rows: DataSet, steps: int, deadline: Deadline) -> tuple[Population, Fit]:
    """Return the programs that were fitted before the deadline, and their fits."""
    fits: list[Fit] = []
    for at in range(0, len(programs), _AT_ONCE):
        if fits and deadline():
            break
        fits.append(fit_constants(programs[at : at + _AT_ONCE], rows, n_iterations=steps))
    fit = Fit(*map(np.concatenate, zip(*fits)))
    return programs[: len(fit.nmse)], fit


def _begun(token: int, starts: _Starts, library: Library) -> Iterator[Term]:
    """Yield the forms of a column with each of their starting values."""
    for form in COMMON_FORMS:
        program = form.program(library, token)
        if program is not None and form.text in _BEGINNINGS:
            tokens, numbers = program
            with np.errstate(all="ignore"):
                values = dict(zip("abc", _BEGINNINGS[form.text](starts)))
            columns = [values[n] if isinstance(n, str) else n * starts.ones for n in numbers]
            rows = np.column_stack(columns).tolist() if columns else [()]
            yield from ((tokens, tuple(constants)) for constants in rows)


def _best_of_each(programs: Population, nmse: np.ndarray, n: int) -> np.ndarray:
    """Return the numbers of the n best fits of every form and column."""
    order = np.argsort(nmse, kind="stable")
    counts: dict[bytes, int] = {}
    best = []
    for i in order[np.isfinite(nmse[order])].tolist():
        key = programs.tokens[i, : programs.lengths[i]].tobytes()
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= n:
            best.append(i)
    return np.array(best, dtype=np.int64)


def curve_formulas(curves: Curves, problem: Problem, deadline: Deadline = never) -> Population:
    """Return the best fitted forms as complete formulas with their scales and offsets.

    These are at most twelve, with the shortest descriptions of constants and residuals. The leave-one-out
    error of each is smaller than the error of the mean of the target.
    """
    data = problem.data
    formulas, nmse = written_out(curves.programs, curves.fit, data)
    n_constants = formulas.is_constant.sum(axis=1)
    bits = data.bits_of_residuals(nmse) + BITS_OF_CONSTANT * n_constants
    is_valid = np.isfinite(nmse) & (LEAST_ROWS_PER_CONSTANT * n_constants <= data.n_independent)
    valid = np.flatnonzero(is_valid & problem.valid.whole(formulas))
    chosen: list[int] = []
    for i in valid[np.argsort(bits[valid], kind="stable")].tolist():
        if len(chosen) == _BEST_FORMULAS or deadline():
            break
        # A peak as narrow as the distance of two rows would fit a single row.
        if uncertainty_of(formulas[i], data).leave_one_out < 1.0:
            chosen.append(i)
    return formulas[np.array(chosen, dtype=np.int64)]
