"""The forms of one fitted program: functions without effect on the data go, and constants are merged."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dgsr.expressions.programs.translation import FreeProgram
from dgsr.expressions.rewriting.algebra import SignedTerms, added, signed_terms
from dgsr.expressions.rewriting.expansion import expanded, gathered, separated
from dgsr.expressions.rewriting.merging import PLACEMENTS, merge
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.evaluation import evaluate_strictly
from dgsr.expressions.trees.simple_numbers import ROUNDING
from dgsr.expressions.trees.trees import Tree, is_number, rewritten, variables_of
from dgsr.finishing.fits import Fits, FittedProgram
from dgsr.finishing.programs import complexity, tree_of, written

# Largest complexity of a form of a program, as a multiple of the simplest form's.
_MOST_COMPLEX = 1.5


def plain(tree: Tree, fits: Fits, rewrite: Callable[[Tree], Tree] = lambda plainer: plainer) -> FreeProgram:
    """Write a tree without the functions that have no effect on the data, if it then fits as well.

    `rewrite` is applied to the tree that is left without them.
    """
    program, plainer = written(tree, fits.library), rewritten(tree, partial(_without_idle, fits))
    if plainer == tree:
        return program
    shorter = written(rewrite(plainer), fits.library)
    return shorter if fits.is_as_good(fits.nmse(shorter), fits.nmse(program)) else program


def _without_idle(fits: Fits, tree: Tree) -> Tree:
    """Return a node without a function that has no effect on the data.

    Thus f or -f replaces abs(f) where f has one sign, exp(c*f) replaces b**f, f replaces f + 1e-20, and 1
    replaces tanh(20*f) where f is large. A function of a column of 0 and 1 is linear, as 1 + 0.49*d.
    """
    if fits.indicators and (line := _line_of_indicator(tree, fits)) is not None:
        return line
    if tree[0] == "abs":
        values = _values(tree[1], fits)
        if np.all(values >= 0) or np.all(values <= 0):
            return tree[1] if np.all(values >= 0) else ("neg", tree[1])
    if tree[0] == "pow" and isinstance(tree[1], float) and tree[1] > 0 and "exp" in fits.library.index:
        return ("exp", ("mul", math.log(tree[1]), tree[2]))
    if tree[0] in ("add", "sub"):
        first, second = (np.abs(_values(term, fits)) for term in tree[1:])
        if np.all(second <= ROUNDING * first):
            return tree[1]
        if np.all(first <= ROUNDING * second):
            return tree[2] if tree[0] == "add" else ("neg", tree[2])
    elif tree[0] not in ("mul", "div", "neg"):  # these three never saturate
        values = _values(tree, fits)
        with np.errstate(all="ignore"):
            levels_off = values.ndim == 1 and np.ptp(values) <= ROUNDING * np.abs(values[0])
        if levels_off and np.isfinite(values[0]):
            return int(values[0]) if values[0].is_integer() else float(values[0])
    return tree


def _values(tree: Tree, fits: Fits) -> np.ndarray:
    """Return the values of a tree on the data; a tree without variables has a single value."""
    return np.asarray(evaluate_strictly(tree, fits.variables, functions=fits.library.functions))


def merged(tree: Tree, fits: Fits, placement: str = "simplest") -> FreeProgram:
    """Write a tree with its constants merged, including those that only idle functions separate."""
    return plain(merge(tree, placement), fits, partial(merge, placement=placement))


def forms(start: FittedProgram, fits: Fits) -> list[FittedProgram]:
    """Return the forms of a program that fit as well, refitted; the program itself too if it is simpler.

    Forms much longer than the simplest are left out, since simpler numbers would not make up for that. The
    complexity of the program is that of its printed form: (sqrt(x1)*x2)**2 is printed as sqrt(x1)**2*x2**2,
    and x1*x2**2 is simpler.
    """
    tree = tree_of(start.program, fits.library)
    # Some libraries, such as one without subtraction, lack tokens for a printed form.
    with contextlib.suppress(ValueError, ArithmeticError):
        start = FittedProgram(written(tidy(tree), fits.library), start.nmse)
    found: dict[tuple, FittedProgram] = {}
    for program in _programs(tree, fits):
        key = (program.tokens.tobytes(), program.free.tobytes())
        if key not in found:
            found[key] = fits.refitted(program, copies=True)
    kept = [form for form in found.values() if fits.is_as_good(form.nmse, start.nmse)]
    sizes = [complexity(form.program, fits.library) for form in kept]
    simplest = min(sizes, default=math.inf)
    if simplest > complexity(start.program, fits.library):
        return [*kept, start]
    return [form for form, size in zip(kept, sizes, strict=True) if size <= _MOST_COMPLEX * simplest]


def _programs(tree: Tree, fits: Fits) -> Iterator[FreeProgram]:
    """Yield the trees of `rewritings` as programs of the library, the merged ones without idle functions."""
    for placement in PLACEMENTS[:-1]:
        with contextlib.suppress(ValueError, ArithmeticError):
            yield merged(tree, fits, placement)
    for other in _rewritings_of_normal(tree):
        with contextlib.suppress(ValueError, ArithmeticError):
            yield written(other, fits.library)


def rewritings(tree: Tree) -> Iterator[Tree]:
    """Yield trees of the same values with merged constants, where they are defined, as `forms` compares."""
    for placement in PLACEMENTS[:-1]:
        with contextlib.suppress(ValueError, ArithmeticError):
            yield merge(tree, placement)
    yield from _rewritings_of_normal(tree)


def _rewritings_of_normal(tree: Tree) -> Iterator[Tree]:
    try:
        normal = _normal(tree)
    except (ValueError, ArithmeticError):
        return
    for rewrite in _REWRITINGS:
        with contextlib.suppress(ValueError, ArithmeticError):
            yield rewrite(normal)


def _normal(tree: Tree, squares: bool = False) -> Tree:
    return merge(tree, PLACEMENTS[0], squares)


def _doubled(tree: Tree) -> Tree:
    """Return the tree with the squares of sines and cosines written as cosines of twice the angle.

    Thus 26 + 24*cos(2*x1)**2 becomes 38 + 12*cos(4*x1), a wave around its mean.
    """

    def of_square(node: Tree) -> Tree:
        match node:
            case ("square", ("sin" | "cos" as name, angle)) | ("pow", ("sin" | "cos" as name, angle), 2):
                twice = ("cos", ("mul", 2, angle))
                return ("div", ("sub" if name == "sin" else "add", 1, twice), 2)
        return node

    return _normal(rewritten(tree, of_square))


def _distributed(tree: Tree) -> Tree:
    """Return the tree with factors of sums multiplied into their terms, where that adds no number.

    Thus -3 - 0.02*(x1 + 40*log(x1)) becomes -3 - 0.02*x1 - 0.8*log(x1).
    """
    return rewritten(tree, _with_own_factors)  # not merged, which would take the factor out again


def _with_own_factors(node: Tree) -> Tree:
    if node[0] not in ("add", "sub", "mul"):
        return node
    terms = [(sign * s, t) for sign, term in signed_terms(node) for s, t in _over_terms(term)]
    return added(terms) if len(terms) > 1 else node


def _over_terms(term: Tree) -> SignedTerms:
    """Return the terms of a number times a sum if at most one has no number of its own, else the term."""
    match term:
        case ("mul", float(factor), ("add" | "sub", _, _) as total):
            parts = signed_terms(total)
            if sum(not _has_number(part) for _, part in parts) <= 1:
                return [(sign, _times(factor, part)) for sign, part in parts]
    return [(1, term)]


def _has_number(term: Tree) -> bool:
    return is_number(term) or (isinstance(term, tuple) and term[0] == "mul" and isinstance(term[1], float))


def _times(factor: float, term: Tree) -> Tree:
    match term:
        case ("mul", float(own), rest):
            return ("mul", factor * own, rest)
    return factor * float(term) if is_number(term) else ("mul", factor, term)


def _shifted(tree: Tree) -> Tree:
    """Return a linear function of a column in terms of its root: 5*(x1 - 32)/9 for 5*x1/9 - 160/9."""
    match tree:  # the result is not merged, since merging would multiply the factor in again
        case ("add", float(offset), ("mul", float(factor), str(x))) if factor != 0.0:
            return ("mul", factor, ("add", x, offset / factor))
        case ("sub", float(offset), ("mul", float(factor), str(x))) if factor != 0.0:
            return ("mul", factor, ("sub", offset / factor, x))
        case ("sub", ("mul", float(factor), str(x)), float(offset)) if factor != 0.0:
            return ("mul", factor, ("sub", x, offset / factor))
    return tree


_REWRITINGS: tuple[Callable[[Tree], Tree], ...] = (
    lambda tree: _normal(expanded(tree)),
    lambda tree: tidy(expanded(gathered(tree))),  # not merged, which would undo the gathering
    lambda tree: _normal(separated(tree)),
    lambda tree: _normal(separated(_normal(tree, squares=True))),
    _doubled,
    _distributed,
    _shifted,
)


def _line_of_indicator(tree: Tree, fits: Fits) -> Tree | None:
    """Return a function of one column of 0 and 1 as a linear function, or None where that is not possible."""
    columns, library = variables_of(tree), fits.library
    if len(columns) != 1 or not columns <= fits.indicators or _is_line(tree):
        return None
    if not (library.has_constants and {"add", "mul"} <= library.index.keys()):
        return None
    (name,) = columns
    with np.errstate(all="ignore"):
        ends = evaluate_strictly(tree, {name: np.array([0.0, 1.0])}, functions=library.functions)
        offset, slope = float(ends[0]), float(ends[1] - ends[0])
    if not np.isfinite([offset, slope]).all():
        return None
    term: Tree = name if slope == 1.0 else ("mul", slope, name)
    return term if offset == 0.0 else ("add", offset, term)


def _is_line(tree: Tree) -> bool:
    """Return whether a tree of one column is already written as a linear function."""
    match tree:
        case str():
            return True
        case ("neg", inner):
            return _is_line(inner)
        case ("add" | "sub" | "mul" | "div", first, second) if is_number(second):
            return _is_line(first)
        case ("add" | "sub" | "mul", first, second) if is_number(first):
            return _is_line(second)
    return False
