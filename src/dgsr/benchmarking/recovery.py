"""Criteria of whether an expression is the true formula of a problem.

`is_recovered` compares values with 50 digits, and rounds constants by SRBench's rule. `is_found` depends only
on the NMSE on rows without noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.exports.symbolic import from_sympy, to_sympy
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.simple_numbers import recognised
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import Tree, leaves, map_leaves
from dgsr.problems import Problem

#: Points at which two formulas are compared.
N_POINTS = 30
#: Fewest of these points at which both formulas must have a value.
MIN_COMPARABLE = 10
#: Decimal digits of the computed values.
DIGITS = 50
#: Largest relative difference of equal values. It reserves 30 of the 50 digits for cancellation, while errors
#: of fitted constants (1e-16) are far larger.
TOLERANCE = 1e-20
# NMSE on clean rows below which a formula with fitted constants has the form of the law.
_FORM_NMSE = 1e-9
# Largest complexity of a formula with the form of the law: this factor times that of the law, plus `_MORE`.
_LONGER = 1.3
# Complexity that is allowed in addition, for a scale and an offset.
_MORE = 4
# Share of its former value above which every fitted constant must stay; smaller ones have vanished.
_VANISHED = 1e-6
# NMSE below which a formula is found on noise-free rows after a fit to data without noise.
_EXACT_NMSE = 1e-8
# The same after a fit to noisy data, as a share of the squared noise, if that is larger.
_SHARE_OF_NOISE = 0.02


class Recovery(NamedTuple):
    """The result of the test of one expression."""

    recovered: bool
    #: ``"equal"`` at every point; ``"difference"`` or ``"ratio"``: with its fitted constants rounded, the
    #: difference from the truth or the ratio to it is constant (SRBench's rule); ``"different"``;
    #: ``"undefined"``: too few points at which both have a value.
    how: str
    #: Largest relative difference from the truth over the points, before any constant is rounded.
    error: float


def is_found(error: float | None, noise: float) -> bool:
    """Return whether a formula is the law, by its NMSE on rows without noise.

    `error` is the NMSE on many rows that were not used in the fit, None if it is not finite; `noise` is the
    standard deviation of the noise on the rows of the fit, in standard deviations of y.
    """
    return error is not None and error < max(_EXACT_NMSE, _SHARE_OF_NOISE * noise**2)


def has_the_form(expression: Expression, X: np.ndarray, y: np.ndarray, complexity: int) -> bool:
    """Return whether an expression is the law except for the values of its constants.

    It is if a fit of its constants to clean rows, which starts at their values, has an NMSE below 1e-9 and
    none of them vanishes, and if it is hardly more complex than the law with a scale and an offset.

    `X` (n_rows, n_columns) and `y` (n_rows,) are rows without noise, many more than there are constants.
    `complexity` is that of the law.
    """
    if expression.complexity > _LONGER * complexity + _MORE:
        return False
    population = Population.from_expressions([expression])
    before = population.constants[0, : len(expression.constants)].copy()
    data = DataSet.from_arrays(X, y)
    with np.errstate(all="ignore"):
        nmse = fit_constants(population, data, scaled=False, n_iterations=100, precision=1e-12).nmse[0]
    after = population.constants[0, : len(before)]
    return bool(nmse < _FORM_NMSE and np.all(np.abs(after) > _VANISHED * np.abs(before)))


def is_recovered(expression: Expression | str, problem: Problem) -> Recovery:
    """Test whether `expression` is symbolically equivalent to the truth of `problem`.

    Both are evaluated with 50 digits at 30 random points of the problem's domain; points where either is
    undefined, complex or too large are skipped, and 10 must remain. The expression is recovered if all
    values are equal up to a relative `TOLERANCE`. An expression with fitted constants is also recovered under
    SRBench's rule: with its constants rounded to 3 decimals (below 1e-4 to 0), the difference from the truth
    or the ratio to it is constant up to the same tolerance, R2 is above 0.5, and it is neither 0 nor
    undefined. Constants are rounded both in the program and after sympy has merged them.

    Parameters
    ----------
    expression : Expression or str
        An expression refers to the problem's variables by position, a text by name. Every number of a text
        that is not an integer counts as a fitted constant.
    problem : Problem

    References
    ----------
    La Cava et al., "Contemporary Symbolic Regression Methods and their Relative Performance",
    NeurIPS 2021, definition of a symbolic solution.
    """
    candidate, has_fitted = _candidate(expression, problem)
    points = _points(problem)
    truth = _values(problem.truth, points)
    values = _values(candidate, points)
    pairs = _comparable(values, truth)
    if len(pairs) < MIN_COMPARABLE:
        return Recovery(False, "undefined", math.inf)
    error = max(0.0 if a == b else float(abs(a - b) / max(abs(a), abs(b))) for a, b in pairs)
    if error <= TOLERANCE:
        return Recovery(True, "equal", error)
    if has_fitted and _r2(pairs) > 0.5:
        for rounded in _roundings(candidate):
            how = _constant_relation(_comparable(_values(rounded, points), truth))
            if how is not None:
                return Recovery(True, how, error)
    return Recovery(False, "different", error)


def _candidate(expression: Expression | str, problem: Problem) -> tuple[Tree, bool]:
    """Return the tree in the problem's variables, and whether it has fitted constants."""
    names = problem.variable_names
    if isinstance(expression, str):
        tree = parse(expression, names)
        return tree, any(not isinstance(leaf, str | int) for leaf in leaves(tree))
    if expression.library.n_variables != len(names):
        raise ValueError(
            f"expression has {expression.library.n_variables} variables; {problem.name} has {len(names)}."
        )
    return recognised(expression.with_feature_names(names).tree), len(expression.constants) > 0


# Numbers -----------------------------------------------------------------------------------------


def _points(problem: Problem) -> list[dict[str, Any]]:
    """Return fixed random points of the domain, as mpmath numbers of 50 digits by variable name."""
    from mpmath.ctx_mp import MPContext

    context = MPContext()  # mpmath.mp is not used, because users may set its precision
    context.dps = DIGITS
    rng = np.random.default_rng(0)
    _, low, high = zip(*problem.variables)
    rows = rng.uniform(low, high, (N_POINTS, len(low)))
    return [dict(zip(problem.variable_names, map(context.mpf, row))) for row in rows.tolist()]


def _values(tree: Tree, points: list[dict[str, Any]]) -> list[Any]:
    """Return the value of a tree at every point, `None` where it is undefined."""
    values = []
    for point in points:
        try:
            context = next(iter(point.values())).context
            values.append(evaluate(tree, point, context))
        except ArithmeticError:
            values.append(None)
    return values


def _comparable(values: list[Any], truth: list[Any]) -> list[tuple[Any, Any]]:
    """Return the pairs of values where both are defined."""
    return [(a, b) for a, b in zip(values, truth) if a is not None and b is not None]


def _r2(pairs: list[tuple[Any, Any]]) -> float:
    mean = sum(b for _, b in pairs) / len(pairs)
    total = sum((b - mean) ** 2 for _, b in pairs)
    residual = sum((a - b) ** 2 for a, b in pairs)
    if total == 0:
        return 1.0 if residual == 0 else 0.0
    return float(1 - residual / total)


def _constant_relation(pairs: list[tuple[Any, Any]]) -> str | None:
    """Return whether the "difference" or the "ratio" of candidate and truth is constant, else None."""
    if len(pairs) < MIN_COMPARABLE or all(a == 0 for a, _ in pairs):
        return None
    differences = [a - b for a, b in pairs]
    if max(differences) - min(differences) <= TOLERANCE * max(abs(b) for _, b in pairs):
        return "difference"
    if any(b == 0 for _, b in pairs):
        return None
    ratios = [a / b for a, b in pairs]
    return "ratio" if max(ratios) - min(ratios) <= TOLERANCE * max(map(abs, ratios)) else None


# Rounding ----------------------------------------------------------------------------------------


def _roundings(tree: Tree) -> list[Tree]:
    """Return the tree with its constants rounded, and the same after sympy has merged the constants."""
    rounded = [map_leaves(tree, _rounded)]
    try:
        merged = from_sympy(to_sympy(tree))
    except (ValueError, ArithmeticError, RecursionError):  # infinite or complex parts, or a tree too deep
        return rounded
    return [*rounded, map_leaves(merged, _rounded)]


def _rounded(leaf: Any) -> Any:
    """Round a constant as SRBench does, to 3 exact decimals, so that 0.75 is 3/4, and below 1e-4 to 0."""
    if isinstance(leaf, (str, int)) or not math.isfinite(leaf):
        return leaf
    return 0 if abs(leaf) < 1e-4 else round(Fraction(leaf), 3)
