"""Turn the programs at the end of a search into formulas that a person would write.

Each program is first rewritten in the raw variables. Functions that have no effect on the data, such as the
abs of positive values, are left out, and redundant constants are merged (`forms`). The remaining constants
become simple numbers (`snapping`) as far as the data allow (`fits`). Finally, formulas that have a name are
written in their customary form (`conventions`), and sums as products where that is shorter (`factoring`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dgsr.constants.uncertainty import SIGNIFICANT
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.coordinates import unscaled
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.nesting import Nesting
from dgsr.expressions.programs.translation import FreeProgram, to_program
from dgsr.expressions.programs.units import Units
from dgsr.expressions.rewriting.angles import with_roots
from dgsr.expressions.rewriting.expansion import expanded
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.simple_numbers import simplest
from dgsr.expressions.trees.trees import Tree
from dgsr.finishing.conventions import as_people_write
from dgsr.finishing.factoring import factored
from dgsr.finishing.fits import Fits, FittedProgram, OutOfTime
from dgsr.finishing.forms import forms, plain
from dgsr.finishing.programs import score, tree_of, written
from dgsr.finishing.snapping import snapped, with_simple_numbers


def finish(
    programs: Population,
    column_scales: np.ndarray,
    data: DataSet,
    library: Library,
    tolerance: float,
    required: frozenset[int] = frozenset(),
    nesting: Nesting | None = None,
    units: Units | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> list[Expression]:
    """Return each program as the formula a person would write for it.

    Parameters
    ----------
    programs : Population
        Programs of the scaled variables x_i / column_scales[i].
    column_scales : ndarray of shape (n_features,)
    data : DataSet
        All rows, in the raw variables.
    library : Library
        Library of the programs and of the result.
    tolerance : float
        NMSE that counts as exact.
    required : frozenset of int
        Tokens that a formula retains if its program has them; a column without effect on the data may go.
    nesting : Nesting or None
        Limits on nesting that a formula respects if its program does.
    units : Units, optional
        Units of the columns and the target; of several forms, one with the fewest violations is returned.
    is_over : callable, optional
        Returns True once the time is over. The remaining programs are then only rewritten in the raw
        variables.

    Returns
    -------
    list of Expression
        One formula for each program, in their order. Each fits as well as its program, up to what chance
        explains: n log(NMSE) grows by less than 4 for each constant that is made simpler.

    Raises
    ------
    ValueError
        If a program needs a column scale and `library` has no constants to write it.
    """
    fits, formulas = Fits(data, library, tolerance, is_over), list[Expression]()
    n_constants = programs.is_constant.sum(axis=1)
    for i, n in enumerate(n_constants.tolist()):
        tokens, constants = programs.tokens[i, : programs.lengths[i]], programs.constants[i, :n]
        tree = unscaled(
            tree_of(FreeProgram(tokens, constants, np.ones(n, dtype=bool)), library), column_scales
        )
        try:
            formulas.append(_finished(tree, fits, required, nesting, units))
        except OutOfTime:
            formulas.append(Expression(library, *to_program(tree, library)))
    return formulas


def mean_formula(data: DataSet, library: Library) -> Expression:
    """Return the mean of the targets as a formula of a library with constants.

    The constant is the simplest number within two standard errors of the mean, as in other formulas. With
    more digits, any other formula would be short in comparison.
    """
    near = math.sqrt(max(SIGNIFICANT / data.n_effective, data.rounding_nmse) * data.variance)
    return Expression(library, [library.index["const"]], [simplest(data.mean, near)])


def multiplied_out(expression: Expression) -> Expression:
    """Return an expression with its products of sums multiplied out and like terms collected."""
    try:
        tokens, constants = to_program(tidy(expanded(expression.tree)), expression.library)
    except (ValueError, ArithmeticError):  # the result is too long, or one of its numbers too large
        return expression
    return Expression(expression.library, tokens, constants)


def _finished(
    tree: Tree,
    fits: Fits,
    required: frozenset[int],
    nesting: Nesting | None,
    units: Units | None,
) -> Expression:
    library = fits.library
    start = fits.fitted(plain(tree, fits))
    finished = [snapped(form, start.nmse, fits) for form in forms(start, fits)]

    def is_nested_well(form: FittedProgram) -> bool:
        return nesting is None or nesting.holds(form.program.tokens.tolist(), library)

    simplest = _simplest(finished, library)
    lost = required.difference(simplest.program.tokens)
    if (lost and max(lost) < library.first_variable) or not is_nested_well(simplest):
        # The rewriting may replace operators, an inverse by a quotient. The program's own form has them all.
        own = fits.refitted(written(tree, library))
        finished += [own, snapped(own, own.nmse, fits)]
        kept = [form for form in finished if required <= set(form.program.tokens) and is_nested_well(form)]
        finished = kept or finished
    if units is not None:
        violations = _violations(finished, units, library)
        if violations.min() > 0:
            # A constant of value 1 that carries a unit was left out. The program's own form has it.
            own = fits.refitted(written(tree, library))
            finished += [own, with_simple_numbers(own, own.nmse, fits), snapped(own, own.nmse, fits)]
            violations = _violations(finished, units, library)
        finished = [finished[i] for i in np.flatnonzero(violations == violations.min())]
    best = _simplest(finished, library)
    formula = _expression(best, library)

    def is_allowed(rewritten: Expression) -> bool:
        keeps_required = required.intersection(formula.tokens) <= {*rewritten.tokens.tolist()}
        return keeps_required and (nesting is None or nesting.holds(rewritten.tokens.tolist(), library))

    usual = as_people_write(best, fits)
    breaks = np.zeros(2) if units is None else _violations([best, usual], units, library)
    if is_allowed(_expression(usual, library)) and breaks[1] <= breaks[0]:
        formula = _expression(usual, library)
    if units is None and is_allowed(collected := _collected(formula)):
        formula = collected
    if units is None and is_allowed(in_factors := factored(formula)):
        before, after = (fits.nmse(_program(each)) for each in (formula, in_factors))
        formula = in_factors if fits.is_as_good(after, before) else formula
    rooted = _rooted(formula)
    return rooted if is_allowed(rooted) else formula


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


def _rooted(formula: Expression) -> Expression:
    """Return sqrt(1 - x1**2) for cos(arcsin(x1)) in a formula of a library that has roots."""
    library, tree = formula.library, formula.tree
    roots = with_roots(tree) if "sqrt" in library.index else tree
    return formula if roots == tree else Expression(library, *to_program(roots, library))


def _simplest(forms: list[FittedProgram], library: Library) -> FittedProgram:
    """Return the simplest form; of several equally simple forms, the one with the best fit."""
    return min(forms, key=lambda form: (round(score(form.program, library), 6), form.nmse))


def _program(formula: Expression) -> FreeProgram:
    # The constants are copied, since the kernels would be compiled again for a read-only array.
    return FreeProgram(formula.tokens, formula.constants.copy(), np.zeros(len(formula.constants), dtype=bool))


def _expression(form: FittedProgram, library: Library) -> Expression:
    return Expression(library, form.program.tokens, form.program.constants)


def _violations(forms: list[FittedProgram], units: Units, library: Library) -> np.ndarray:
    """Return the number of violations of the rules of units in each form, shape (n_forms,)."""
    programs = [_expression(form, library) for form in forms]
    return units.violations(*Population.from_expressions(programs).arrays, library, by_value=True)
