"""The customary form of functions that have names: 12.5*x/(6.75 + x) for x/(0.54 + 0.08*x).

Both are the same function with two numbers, and it is chance which has fewer digits. The numbers of the first
are the two constants of Michaelis and Menten.
"""

from __future__ import annotations

import numpy as np

from dgsr.expressions.formulas.common_forms import CommonForm, named_parts
from dgsr.expressions.programs.translation import FreeProgram
from dgsr.expressions.rewriting.merging import merge
from dgsr.expressions.trees.trees import Tree
from dgsr.finishing.fits import Fits, FittedProgram
from dgsr.finishing.programs import are_equal, score, tree_of, written
from dgsr.finishing.snapping import rounded, with_simple_numbers

# Largest increase of `score` for the customary form, as of two tokens and two digits. Of 48 fits 8 changed
# with it: 5 were better written, 2 more found Hill's law.
_MOST_LONGER = 6.0
# Largest difference of a and b in a - b/(1 + g), as a share of a, at which they may be the same number.
_NEAR = 0.1


def as_people_write(fit: FittedProgram, fits: Fits) -> FittedProgram:
    """Return a formula that has a name in its customary form, if that fits as well and is hardly longer.

    Where all numbers are whole, only the rewriting of `_complement` is tried.
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
    if any(way is not None and are_equal(way, program, 1e-9) for way in ways.values()):
        return fit
    free = _free_tree(program, fits)
    kept: dict[float, FittedProgram] = {}
    for number, (placement, way) in enumerate(ways.items()):
        exactly = None if way is None else FittedProgram(way, fits.nmse(way))
        for other in (exactly, _fitted(free, placement, fits)):
            # Each later, less customary form counts one digit more.
            if other is not None and _is_preferred(other, fit, fits):
                kept.setdefault(score(other.program, fits.library) + number, other)
    return kept[min(kept)] if kept else fit


def _complement(program: FreeProgram, fits: Fits) -> FittedProgram | None:
    """Return a*g/(1 + g), or a/(1 + 1/g) if g is an exponential, for a - b/(1 + g) with b near a, else None.

    Thus 8 - 8/(1 + 0.024*x**1.7) becomes 8*x**1.7/(42 + x**1.7), and 97 - 98/(1 + 0.005*exp(t)) a logistic
    curve.
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
    """Return the tree of a program with all constants free except exponents that are multiples of 1/2."""
    return tree_of(program._replace(free=np.ones_like(program.free)), fits.library)


def _fitted(tree: Tree, placement: str, fits: Fits) -> FittedProgram | None:
    """Return a tree with its scale in another place and its constants fitted, or None if there is none.

    Numbers that are simple in one form need not be so in another. Equal numbers stay equal.
    """
    way = _written(tree, placement, fits)
    if way is None:
        return None
    start = fits.refitted(way, copies=True)
    return rounded(with_simple_numbers(start, start.nmse, fits), fits)


def _is_preferred(other: FittedProgram, fit: FittedProgram, fits: Fits) -> bool:
    """Return whether a rewritten formula has a name, fits as well, and is hardly longer."""
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
