"""The way that people write functions that have names: 12.5*x/(6.75 + x) for x/(0.54 + 0.08*x).

The two are one function with as many numbers, and which of them has fewer digits is chance. Michaelis and
Menten's two constants are numbers of the first.
"""

from __future__ import annotations

import numpy as np

from dgsr.expressions.formulas.common_forms import CommonForm, named_parts
from dgsr.expressions.programs.translation import FreeProgram
from dgsr.expressions.rewriting.merging import merge
from dgsr.expressions.trees.trees import Tree
from dgsr.finishing.fits import Fits, FittedProgram
from dgsr.finishing.programs import score, tree_of, written
from dgsr.finishing.snapping import rounded, with_simple_numbers

# How much harder to read a formula may become: two tokens and two digits, or an exponent that stands twice.
_MOST_LONGER = 6.0
# Largest difference of the numbers a and b of a - b/(1 + g) that may be one, as a share of a.
_NEAR = 0.1


def as_people_write(fit: FittedProgram, fits: Fits) -> FittedProgram:
    """Return a formula that has a name in the way people write it, if it fits as well and is hardly longer.

    The numbers of a formula whose numbers are all whole stay.
    """
    program = fit.program
    form = _form_of(program, fits)
    if form is None:
        return fit
    complement = _complement(program, fits)
    if complement is not None and _is_preferred(complement, fit, fits):
        return complement
    if np.all(program.constants == np.rint(program.constants)):
        return fit
    exact = tree_of(program._replace(free=np.zeros_like(program.free)), fits.library)
    ways = {placement: _written(exact, placement, fits) for placement in form.placements}
    if any(way is not None and _are_equal(way, program) for way in ways.values()):
        return fit
    kept: dict[float, FittedProgram] = {}
    for number, (placement, way) in enumerate(ways.items()):
        exactly = None if way is None else FittedProgram(way, fits.nmse(way))
        for other in (exactly, _fitted(_free_tree(program, fits), placement, fits)):
            if other is not None and _is_preferred(other, fit, fits):  # the most usual way wins by a digit
                kept.setdefault(score(other.program, fits.library) + number, other)
    return kept[min(kept)] if kept else fit


def _complement(program: FreeProgram, fits: Fits) -> FittedProgram | None:
    """Return a*g/(1 + g), or a/(1 + 1/g) if g is an exponential, for a - b/(1 + g) with b near a, else None.

    8 - 8/(1 + 0.024*x**1.7) is 8*x**1.7/(42 + x**1.7), and 97 - 98/(1 + 0.005*exp(t)) a logistic curve.
    """
    try:
        tree = merge(_free_tree(program, fits), "number")
    except (ValueError, ArithmeticError):
        return None
    match tree:
        case ("sub", float(a), ("div", float(b), ("add", 1, g))) if abs(a - b) <= _NEAR * abs(a):
            pass
        case ("mul", float(a), ("sub", 1, ("div", 1, ("add", 1, g)))):
            pass
        case _:
            return None
    match g:
        case ("exp", _) | ("mul", float(), ("exp", _)):
            return _fitted(("div", a, ("add", 1, ("div", 1, g))), "number", fits)
        case ("mul", float(factor), function) if factor != 0.0:
            return _fitted(("div", ("mul", a, function), ("add", 1.0 / factor, function)), "leading", fits)
        case _:
            return _fitted(("div", ("mul", a, g), ("add", 1.0, g)), "leading", fits)


def _free_tree(program: FreeProgram, fits: Fits) -> Tree:
    """Return the tree of a program with all its constants free, but for simple exponents."""
    return tree_of(program._replace(free=np.ones_like(program.free)), fits.library)


def _fitted(tree: Tree, placement: str, fits: Fits) -> FittedProgram | None:
    """Return a tree with its scale in another place and its constants fitted, or None without such a way.

    Simple numbers of a formula need not be simple in another way to write it. Numbers that are equal stay so.
    """
    way = _written(tree, placement, fits)
    if way is None:
        return None
    start = fits.refitted(way, copies=True)
    return rounded(with_simple_numbers(start, start.nmse, fits), fits)


def _is_preferred(other: FittedProgram, fit: FittedProgram, fits: Fits) -> bool:
    """Whether a formula with a name, written in a usual way, fits as well and is hardly longer."""
    return (
        _n_numbers(other.program) <= _n_numbers(fit.program)
        and score(other.program, fits.library) <= score(fit.program, fits.library) + _MOST_LONGER
        and fits.is_as_good(other.nmse, fit.nmse)
        and _form_of(other.program, fits) is not None
    )


def _form_of(program: FreeProgram, fits: Fits) -> CommonForm | None:
    """Return the common form that a program has as a whole, or None."""
    (whole, *_) = named_parts(fits.library, program.tokens.tolist(), program.constants.tolist())
    return None if whole is None else whole.form


def _n_numbers(program: FreeProgram) -> int:
    """Return how many different numbers other than 1 a program has."""
    return len(set(program.constants.tolist()) - {1.0})


def _written(tree: Tree, placement: str, fits: Fits) -> FreeProgram | None:
    try:
        return written(merge(tree, placement), fits.library)
    except (ValueError, ArithmeticError):
        return None


def _are_equal(a: FreeProgram, b: FreeProgram) -> bool:
    same_tokens = np.array_equal(a.tokens, b.tokens)
    return same_tokens and np.allclose(a.constants, b.constants, rtol=1e-9, atol=0.0)
