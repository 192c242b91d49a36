"""The evaluation of the unknown functions of a form, and the choice of an evaluation.

Programs of the rounds are forests (`dgsr.kernels.forms`). Each function is judged as ``a*f + b`` in its place
in the form, with all constants fitted together, and no scale and offset are fitted around the whole, which
would be another form. The archive has whole programs. In data with groups, programs are ranked with a scale
and an offset around the whole for each group, since constants of the form may differ between groups; which do
so is found out at the end (`dgsr.finishing.by_group`).
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import numpy as np

from dgsr.constants.fitting import Fit, fit_constants
from dgsr.constants.scaling import N_CONSTANTS, N_TOKENS
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.form import Filled, Form
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import Budget
from dgsr.kernels.forms import NAMED, NUMBER
from dgsr.search.config import SearchConfig
from dgsr.search.evaluation import Evaluation, Fitted, FittedByGroup, Plain

# Most unknown functions of which all variants with and without scale and offset are fitted, four of each.
_MOST_VARIED = 3
# Room for the constants in the arguments of a function, in uses of each argument.
_USES_OF_ARGUMENT = 3


class InForm(Fitted):
    """Evaluation of forests by the whole programs that they make of a form."""

    # The scales of functions follow from no closed form; where the form is linear in them two steps suffice.
    first_steps: ClassVar[int] = 2

    @property
    def form(self) -> Form:
        """The form of the constraints."""
        assert self.constraints.form is not None
        return self.constraints.form

    @property
    def widths(self) -> tuple[int, int]:
        form, (length, n_constants) = self.form, super().widths
        n = len(form.functions)
        return form.n_outside + n * length, form.n_outside + n * n_constants

    @property
    def whole_widths(self) -> tuple[int, int]:
        form, (length, n_constants) = self.form, super().widths
        n, n_calls = form.code.n_instructions, len(form.code.functions)
        are_constant = np.isin(form.code.kinds, (NAMED, NUMBER))
        own = int(are_constant[:n].sum()) + _USES_OF_ARGUMENT * int(are_constant[n:].sum())
        return length + n_calls * N_TOKENS, own + n_calls * (n_constants + N_CONSTANTS)

    @property
    def must_be_tried(self) -> bool:
        return bool(self.constraints.required or self.constraints.nested)

    def _enter_mean(self) -> None:
        """Leave the archive empty, since the mean of y is not of the form."""

    def whole(self, population: Population) -> Population:
        return self._population(self._filled(population, True))

    def fitted(self, programs: Population, **options: Any) -> Fit:
        filled = self._filled(programs, True)
        whole = self._population(filled)
        if options.pop("second_start", False):
            # The shapes of the functions are fitted first, up to a scale and an offset of the whole: of
            # random starts for all constants together hardly one is near.
            shapes = np.where(filled.origins >= self.form.n_outside, filled.origins, -1)
            fit_constants(whole, self.data, ties=shapes, second_start=True, **options)
        fit = fit_constants(whole, self.data, scaled=self.by_group, ties=filled.origins, **options)
        rows, at = np.nonzero(filled.origins >= 0)
        programs.constants[rows, filled.origins[rows, at]] = whole.constants[rows, at]
        return fit._replace(nmse=np.where(filled.has_room, fit.nmse, np.inf))

    def shortest_places(self, population: Population) -> np.ndarray:
        return self.archive.places(self._population(self._filled(population, False)))

    def variants(self, population: Population, fit: Fit) -> tuple[Population, np.ndarray]:
        """Return the programs with and without the scale and the offset of each function, and their NMSE."""
        found = [self._filled(population, around) for around in _variants(len(self.form.functions))]
        programs = Population.concatenate([self._population(filled) for filled in found])
        ties = np.concatenate([filled.origins for filled in found])
        n = self.config.fit_iterations  # those that enter the archive are fitted further
        nmse = fit_constants(programs, self.data, scaled=self.by_group, ties=ties, n_iterations=n).nmse
        has_room = np.concatenate([filled.has_room for filled in found])
        return programs, np.where(has_room, nmse, np.inf)

    def ties(self, programs: Population) -> np.ndarray:
        ties = np.full(programs.constants.shape, -1, dtype=np.int64)
        for i, length in enumerate(programs.lengths.tolist()):
            parts = self.form.read(programs.tokens[i, :length], programs.constants[i])
            assert parts is not None  # the archive has no others
            ties[i, : len(parts.origins)] = parts.origins
        return ties

    def _filled(self, population: Population, around: bool | np.ndarray) -> Filled:
        around = np.broadcast_to(around, (len(population), len(self.form.functions), 2)).copy()
        return self.form.filled(population.arrays, *self.whole_widths, around)

    def _population(self, filled: Filled) -> Population:
        return Population(self.library, *filled.programs)


def _variants(n_functions: int) -> list[np.ndarray]:
    """Return which functions have a scale and an offset in each variant, shape (n_functions, 2), bool.

    Of many functions all have a scale, and one of them an offset, or one of them has no scale.
    """
    if n_functions <= _MOST_VARIED:
        flags = product((False, True), repeat=2 * n_functions)
        return [np.array(each, dtype=bool).reshape(-1, 2) for each in flags]
    scaled = np.tile([True, False], (n_functions, 1))
    found = [scaled]
    for at in np.ndindex(scaled.shape):
        other = scaled.copy()
        other[at] = not other[at]
        found.append(other)
    return found


def evaluation_of(
    data: DataSet, library: Library, constraints: Constraints, config: SearchConfig, budget: Budget
) -> Evaluation:
    """Return the kind of evaluation that a library and a form need."""
    kind: type[Evaluation] = Plain
    if constraints.form is not None:
        kind = InForm
    elif library.has_constants:
        kind = FittedByGroup if len(data.groups) else Fitted
    return kind(data, library, constraints, config, budget)
