"""The evaluation of programs, with or without a fit of their constants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dgsr.constants.fitting import Fit, fit_constants
from dgsr.constants.scaling import N_CONSTANTS, N_TOKENS, written_out
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import Budget
from dgsr.finders.validity import Validity
from dgsr.kernels.random import new_state
from dgsr.pareto import ParetoArchive
from dgsr.search.config import SearchConfig

# Time of one step of the fit of a program's constants, in evaluations of a program. The clock is read after
# each part of a population, and parts are smaller where a program takes longer.
_STEP_COST = 2
# Most steps of the fit of a program that enters the archive, whose constants a user may see.
_THOROUGH = 30


@dataclass
class Evaluation(ABC):
    """Evaluation of programs on a data set, which counts them and enters the best ones into an archive."""

    data: DataSet
    library: Library
    constraints: Constraints
    config: SearchConfig
    budget: Budget

    # Whether constants are fitted. A round then does not end at its first exact fit, seldom the simplest.
    fits_constants: ClassVar[bool]
    # Default shares of random programs among the new ones of a round, before and after the first restart.
    random_shares: ClassVar[tuple[float, float]]
    # Evaluations that take twenty times as long as a step of bounded training (`dgsr.search.trust_region`).
    refined_every: ClassVar[int]

    def __post_init__(self) -> None:
        fits = self.fits_constants
        self.valid = Validity(self.constraints, self.library)
        self.gain = self.config.gain if fits else 0.0
        self.n_constants = self.constraints.max_constants if fits else 0  # most of a program in the rounds
        self.archive = ParetoArchive(self.library, *self.whole_widths, self.config.tolerance, self.data)

    @property
    def widths(self) -> tuple[int, int]:
        """Most tokens and constants of a program in the rounds."""
        return self.constraints.max_length, self.n_constants

    @property
    def whole_widths(self) -> tuple[int, int]:
        """Most tokens and constants of a program in the archive, which has its slope and intercept."""
        fits = self.fits_constants
        return self.constraints.max_length + fits * N_TOKENS, self.n_constants + fits * N_CONSTANTS

    def whole(self, population: Population) -> Population:
        """Return the programs by which those of the rounds are judged; only those of a form are others."""
        return population

    @property
    def must_be_tried(self) -> bool:
        """Whether programs may break rules of tokens: the grammar excludes forbidden columns."""
        return bool(self.constraints.required)

    @abstractmethod
    def score(self, population: Population, n_new: int) -> np.ndarray:
        """Return the NMSE of programs, times the factors for breeding; count them and enter the best ones.

        The budget of evaluations must suffice for all of them.
        """

    def __call__(self, population: Population, n_new: int = 0) -> np.ndarray:
        """Return the NMSE of every program, count the programs, and enter the best ones into the archive.

        It is `inf` for programs that the budget of evaluations or of time excludes, and for those that lack
        something required. Fitted constants are written into `population`. The constants of its
        first `n_new` programs, which are new, are fitted from two starts, those of the best by more steps.
        """
        nmse = np.full(len(population), np.inf)
        n = min(len(population), self.budget.n_left)
        if not self.must_be_tried:
            nmse[:n] = self.score(population[:n], n_new)
            return nmse
        is_valid = self.valid.tried(self.whole(population[:n]))
        at = np.flatnonzero(is_valid)
        programs = population[at]
        nmse[at] = self.score(programs, int(is_valid[:n_new].sum()))
        population.constants[at] = programs.constants
        self.budget.count(nmse[:n][~is_valid])
        return nmse

    @abstractmethod
    def enter(self, programs: Population) -> None:
        """Enter whole formulas into the archive, without a further scale and offset; they are not counted."""


class Plain(Evaluation):
    """Evaluation in libraries without constants."""

    fits_constants, random_shares, refined_every = False, (0.8, 0.8), 200_000

    def score(self, population: Population, n_new: int) -> np.ndarray:
        nmse = np.full(len(population), np.inf)
        to_keep, to_breed = self.valid.factors_in_rounds(population)
        of_shape = self.valid.shape_factors(population)
        to_keep, to_breed = np.where(of_shape > 1.0, np.inf, to_keep), of_shape * to_breed
        for part in self.budget.parts(len(population), self.data):
            nmse[part] = population[part].nmse(self.data)
            self.budget.count(nmse[part])
            self.archive.update(population[part], _times(nmse[part], to_keep[part]))
        return nmse * to_breed

    def enter(self, programs: Population) -> None:
        self.archive.update(programs, _times(programs.nmse(self.data), self.valid.factors(programs)))


class Fitted(Evaluation):
    """Evaluation with a fitted slope and intercept for every program, and fitted constants for the best."""

    # The share of random programs rises at the first restart: restarts are frequent, and afterwards most
    # samples of the pre-trained decoder repeat programs that have been evaluated.
    fits_constants, random_shares, refined_every = True, (0.5, 0.9), 80_000
    # Steps of the first fit of every program, beside the slope and the intercept, which need none.
    first_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.constraints.required:
            self._enter_mean()

    def _enter_mean(self) -> None:
        # The archive begins with the mean of y, so that every other formula must fit better.
        constant = Expression(self.library, [self.library.index["const"]], [self.data.mean])
        mean = Population.from_expressions([constant])
        self.archive.update(mean, _times(self._losses(mean), self.valid.factors(mean)))

    def score(self, population: Population, n_new: int) -> np.ndarray:
        budget, n = self.budget, 0
        fit = Fit(np.full(len(population), np.inf), np.zeros(len(population)), np.zeros(len(population)))
        for part in budget.parts(len(population), self.data):
            first = self.fitted(population[part], n_iterations=self.first_steps)
            for array, values in zip(fit, first):
                array[part] = values
            n = part.stop
        to_keep, to_breed = self.valid.factors_in_rounds(self.whole(population))
        # Fits take most of the time, so programs that cannot enter the archive get none.
        is_fitted = population.is_constant.any(axis=1) & np.isfinite(to_keep)
        with_constants = np.flatnonzero(is_fitted[:n])
        newcomers, others = with_constants[with_constants < n_new], with_constants[with_constants >= n_new]
        best_others = self._best(others, fit)
        self._fit(population, newcomers, fit, second_start=True)
        self._fit(population, self._best(newcomers, fit), fit)
        self._fit(population, best_others, fit)
        budget.count(fit.nmse[:n])
        # A variant without slope or intercept may keep a rule that the fit breaks by little.
        of_shape = self._shape_factors(population, fit)
        counted = fit._replace(nmse=_times(fit.nmse, to_keep) * of_shape)
        self.archive.update(*self._entries(population, counted))
        # All exact programs get the same NMSE, so that the shortest wins and not the smallest rounding error.
        return np.maximum(fit.nmse, self.config.tolerance) * to_breed * of_shape

    @property
    def by_group(self) -> bool:
        """Whether every group of rows has a slope and an intercept of its own."""
        return len(self.data.groups) > 0

    def fitted(self, programs: Population, **options: Any) -> Fit:
        """Return the fits of the constants of programs, which are written into them; see `fit_constants`."""
        return fit_constants(programs, self.data, **options)

    def _best(self, chosen: np.ndarray, fit: Fit) -> np.ndarray:
        """Return the best of the chosen programs, as many as the share `fit_share` of them."""
        order = chosen[np.argsort(fit.nmse[chosen], kind="stable")]
        return order[: int(np.ceil(self.config.fit_share * len(chosen)))]

    def _fit(self, population: Population, chosen: np.ndarray, fit: Fit, second_start: bool = False) -> None:
        """Fit the constants of the chosen programs; write them into `population`, the results into `fit`."""
        # All parts share one random state, so that second starts do not depend on the size of the parts.
        state = new_state(0)
        n = self.config.fit_iterations
        for part in self.budget.parts(len(chosen), self.data, (1 + second_start) * n * _STEP_COST):
            at = chosen[part]
            programs = population[at]
            found = self.fitted(programs, n_iterations=n, second_start=second_start, state=state)
            population.constants[at] = programs.constants
            for array, values in zip(fit, found):
                array[at] = values

    def _entries(self, population: Population, fit: Fit) -> tuple[Population, np.ndarray]:
        """Return the scaled variants that fit better than all shorter programs, and NMSE times handicaps."""
        best = np.minimum.accumulate(self.archive.nmse)
        improved = np.flatnonzero(fit.nmse < best[self.shortest_places(population)])
        parts = []
        for part in self.budget.parts(len(improved), self.data, _THOROUGH * _STEP_COST):
            at = improved[part]
            variants, nmse = self.variants(population[at], Fit(*(a[at] for a in fit)))
            counted = _times(nmse, self._factors(variants))
            kept = np.flatnonzero(counted < best[self.archive.places(variants)])
            parts.append(Scored(variants[kept], nmse[kept]))
        if not parts:
            return population[:0], np.zeros(0)
        entries, entry_nmse = Scored.concatenate(parts)
        self._fit_thoroughly(entries, entry_nmse)
        return entries, _times(entry_nmse, self._factors(entries))

    def _factors(self, formulas: Population) -> np.ndarray:
        """Return the factors of the NMSE of whole formulas for violations of units and shape."""
        return self.valid.factors(formulas)

    def _shape_factors(self, programs: Population, fit: Fit) -> np.ndarray:
        """Return the factors of the NMSE for violations of shape by programs with scale and offset."""
        return self.valid.shape_factors(self.whole(programs), fit.slope, fit.intercept)

    def _losses(self, formulas: Population) -> np.ndarray:
        """Return the NMSE of whole formulas, with their present constants."""
        return formulas.nmse(self.data)

    def shortest_places(self, population: Population) -> np.ndarray:
        """Return the place in the archive of the shortest variant of every program."""
        return self.archive.places(population)

    def variants(self, population: Population, fit: Fit) -> tuple[Population, np.ndarray]:
        """Return programs with and without slope and intercept, and their NMSE."""
        return written_out(population, fit, self.data)

    def ties(self, programs: Population) -> np.ndarray | None:
        """Return which constants of whole formulas are equal; see `fit_constants`."""
        return None

    def _fit_thoroughly(self, programs: Population, nmse: np.ndarray) -> None:
        """Fit all constants to convergence: these programs are few, and users see them."""
        for part in self.budget.parts(len(programs), self.data, _THOROUGH * _STEP_COST):
            own = programs[part]
            nmse[part] = fit_constants(
                own,
                self.data,
                scaled=self.by_group,
                ties=self.ties(own),
                n_iterations=_THOROUGH,
                precision=1e-9,
            ).nmse

    def enter(self, programs: Population) -> None:
        nmse = self._losses(programs)
        self._fit_thoroughly(programs, nmse)
        self.archive.update(programs, _times(nmse, self._factors(programs)))


class FittedByGroup(Fitted):
    """The same for data with groups, each of which has a slope and an intercept of its own.

    The archive has the programs without these, which `dgsr.finishing.by_group` determines at the end.
    """

    def variants(self, population: Population, fit: Fit) -> tuple[Population, np.ndarray]:
        return population, fit.nmse

    def _factors(self, formulas: Population) -> np.ndarray:
        return self.valid.factors_in_rounds(formulas)[0]

    def _shape_factors(self, programs: Population, fit: Fit) -> np.ndarray:
        return np.ones(len(programs))  # a slope by group may have either sign

    def _losses(self, formulas: Population) -> np.ndarray:
        return fit_constants(formulas, self.data, n_iterations=0).nmse


def _times(nmse: np.ndarray, handicaps: np.ndarray) -> np.ndarray:
    """Return an NMSE times its handicap, infinite where the handicap is, even for an NMSE of 0."""
    return np.where(np.isfinite(handicaps), nmse, np.inf) * np.where(np.isfinite(handicaps), handicaps, 1.0)
