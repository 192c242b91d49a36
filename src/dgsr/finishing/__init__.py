"""Turn the programs at the end of a search into formulas that a person would write.

Each program is rewritten in the raw variables, without functions that have no effect on the data and with
merged constants (`forms`). The remaining constants become simple numbers (`snapping`) as far as the data
allow (`fits`). Finally, formulas that have a name are written in their customary form (`conventions`), and
sums as products where that is shorter (`factoring`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import SIGNIFICANT_DEVIANCE
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.coordinates import unscaled
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.nesting import Nesting
from dgsr.expressions.rewriting.angles import with_roots
from dgsr.expressions.rewriting.expansion import expanded
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.simple_numbers import simplest
from dgsr.expressions.trees.trees import Tree
from dgsr.finishing.conventions import as_people_write
from dgsr.finishing.factoring import factored
from dgsr.finishing.fits import Fits, FittedProgram, OutOfTime
from dgsr.finishing.forms import forms, plain
from dgsr.finishing.programs import free_programs, score, tree_of, written
from dgsr.finishing.snapping import snapped, with_simple_numbers


class _Demands(NamedTuple):
    """What a formula must have, and what it must not have; see `finish`."""

    constraints: Constraints
    required: frozenset[int]
    nesting: Nesting
    library: Library

    @classmethod
    def of(cls, constraints: Constraints, library: Library) -> _Demands:
        required = frozenset(library.index[name] for name in constraints.required)
        return cls(constraints, required, Nesting.of(constraints.limits, library), library)

    def are_met(self, tokens: np.ndarray, required: frozenset[int]) -> bool:
        """Return whether a program has the tokens in `required`, and respects the limits on nesting."""
        found = tokens.tolist()
        return required <= {*found} and self.nesting.holds(found, self.library)

    def allowed(self, new: Expression, old: Expression) -> Expression:
        """Return a rewritten formula if it has the required tokens of the old one, which is returned else."""
        required = self.required.intersection(old.tokens.tolist())
        return new if self.are_met(new.tokens, required) else old

    def violations(self, forms: list[FittedProgram]) -> np.ndarray:
        """Return the number of violations of the rules of units and shape in each form, shape (n_forms,)."""
        units, shape = self.constraints.units, self.constraints.shape
        if units is None and shape is None:
            return np.zeros(len(forms))
        programs = Population.from_expressions([_expression(form, self.library) for form in forms])
        found = np.zeros(len(forms))
        if units is not None:
            found += units.violations(*programs.arrays, self.library, by_value=True)
        if shape is not None:
            found += shape.violations(*programs.arrays, self.library) > 0.0
        return found


def finish(
    programs: Population,
    column_scales: np.ndarray,
    data: DataSet,
    tolerance: float,
    constraints: Constraints | None = None,
    is_over: Callable[[], bool] = lambda: False,
    known: dict[bytes, Expression] | None = None,
) -> list[Expression]:
    """Return each program as the formula a person would write for it, in their order.

    Each fits as well as its program, up to what chance explains: n log(NMSE) grows by less than 4 for each
    constant that is made simpler. Once time is over, programs are only rewritten in the raw variables.

    Parameters
    ----------
    programs : Population
        Programs of the scaled variables x_i / column_scales[i]. ValueError if their library has no constants
        to write a scale with.
    column_scales : ndarray of shape (n_features,)
    data : DataSet
        All rows, in the raw variables.
    tolerance : float
        NMSE that counts as exact.
    constraints : Constraints, optional
        A formula retains required tokens and respects limits of nesting if its program does; a column without
        effect on the data may go. Of several forms one with the fewest violations of units and shape, in the
        raw variables, is returned.
    is_over : callable, optional
        Returns True once the time is over.
    known : dict, optional
        Finished formulas by the bytes of their programs, which are not finished again; new ones are added.
    """
    known, library = {} if known is None else known, programs.library
    fits, formulas = Fits(data, library, tolerance, is_over), list[Expression]()
    demands = _Demands.of(Constraints() if constraints is None else constraints, library)
    for program in free_programs(programs):
        tree = unscaled(tree_of(program, library), column_scales)
        key = program.tokens.tobytes() + program.constants.tobytes()
        try:
            if key not in known:
                known[key] = _finished(tree, fits, demands)
            formulas.append(known[key])
        except OutOfTime:
            formulas.append(Expression.from_tree(tree, library))
    return formulas


def mean_formula(data: DataSet, library: Library) -> Expression:
    """Return the mean of the targets as a formula of a library with constants.

    The constant is the simplest number within two standard errors of the mean, as in other formulas: with
    more digits, any other formula would be short in comparison.
    """
    near = math.sqrt(max(SIGNIFICANT_DEVIANCE / data.n_effective, data.rounding_nmse) * data.variance)
    return Expression(library, [library.index["const"]], [simplest(data.mean, near)])


def multiplied_out(expression: Expression) -> Expression:
    """Return an expression with its products of sums multiplied out and like terms collected."""
    try:
        return Expression.from_tree(tidy(expanded(expression.tree)), expression.library)
    except (ValueError, ArithmeticError):  # the result is too long, or one of its numbers too large
        return expression


def _finished(tree: Tree, fits: Fits, demands: _Demands) -> Expression:
    best, library = _best_form(tree, fits, demands), fits.library
    formula, usual = _expression(best, library), as_people_write(best, fits)
    breaks = demands.violations([best, usual])
    if breaks[1] <= breaks[0]:
        formula = demands.allowed(_expression(usual, library), formula)
    if demands.constraints.units is None:
        formula = demands.allowed(_collected(formula), formula)
        in_factors = demands.allowed(factored(formula), formula)
        is_as_good = fits.is_as_good(fits.nmse(in_factors), fits.nmse(formula))
        formula = in_factors if is_as_good else formula
    if "sqrt" in library.index and (rooted := with_roots(formula.tree)) != formula.tree:
        formula = demands.allowed(Expression.from_tree(rooted, library), formula)
    return formula


def _best_form(tree: Tree, fits: Fits, demands: _Demands) -> FittedProgram:
    """Return the simplest form of a tree that fits as well and meets the demands, as far as one does."""
    library, required = fits.library, demands.required
    start = fits.fitted(plain(tree, fits))
    finished = [snapped(form, start.nmse, fits) for form in forms(start, fits)]
    tokens = _simplest(finished, library).program.tokens
    lost = required.difference(tokens.tolist())
    if (lost and max(lost) < library.first_variable) or not demands.are_met(tokens, frozenset()):
        # The rewriting may replace operators, an inverse by a quotient. The program's own form has them all.
        own = fits.refitted(written(tree, library))
        finished += [own, snapped(own, own.nmse, fits)]
        finished = [form for form in finished if demands.are_met(form.program.tokens, required)] or finished
    violations = demands.violations(finished)
    if violations.min() > 0:
        # A constant of value 1 that carries a unit was left out. The program's own form has it.
        own = fits.refitted(written(tree, library))
        finished += [own, with_simple_numbers(own, own.nmse, fits), snapped(own, own.nmse, fits)]
        violations = demands.violations(finished)
    fewest = np.flatnonzero(violations == violations.min())
    return _simplest([finished[i] for i in fewest], library)


def _collected(formula: Expression) -> Expression:
    """Return a formula multiplied out if variables then occur less often in it, and tokens no more often.

    Thus x2 + 1.5*(x1 + x2) becomes 1.5*x1 + 2.5*x2. Numbers of the first form are shorter by chance only, and
    nobody would write it.
    """
    flat, first = multiplied_out(formula), formula.library.first_variable
    if len(flat.tokens) > len(formula.tokens) or sum(flat.tokens >= first) >= sum(formula.tokens >= first):
        return formula
    # 1 - 0.9 is 0.1 and not 0.09999999999999998.
    largest = float(np.abs(formula.constants).max(initial=0.0))
    near = [4.0 * math.ulp(max(abs(value), largest)) for value in flat.constants.tolist()]
    constants = [simplest(value, error) for value, error in zip(flat.constants.tolist(), near)]
    return Expression(flat.library, flat.tokens, constants)


def _simplest(forms: list[FittedProgram], library: Library) -> FittedProgram:
    """Return the simplest form; of several equally simple forms, the one with the best fit."""
    return min(forms, key=lambda form: (round(score(form.program, library), 6), form.nmse))


def _expression(form: FittedProgram, library: Library) -> Expression:
    return Expression(library, form.program.tokens, form.program.constants)
