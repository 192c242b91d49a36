"""The way that people write functions that have names: 12.5*x/(6.75 + x) for x/(0.54 + 0.08*x).

The two are one function with as many numbers, and which of them has fewer digits is chance. Michaelis and
Menten's two constants are numbers of the first.
"""

from __future__ import annotations

import numpy as np

from dgsr.expressions.common_forms import CommonForm, named_parts
from dgsr.expressions.programs import FreeProgram
from dgsr.expressions.trees import Tree
from dgsr.finishing.fits import Fits, FittedProgram
from dgsr.finishing.merging import merge
from dgsr.finishing.programs import score, tree_of, written
from dgsr.finishing.snapping import rounded, with_simple_numbers

# How much harder to read a formula may become: two tokens and two digits.
_MOST_LONGER = 4.0


def as_people_write(fit: FittedProgram, fits: Fits) -> FittedProgram:
    """Return a formula that has a name in the way people write it, if it fits as well and is hardly longer.

    A formula whose numbers are all whole stays as it is.
    """
    program, library = fit.program, fits.library
    form = _form_of(program, fits)
    if form is None or not form.placements or np.all(program.constants == np.rint(program.constants)):
        return fit
    exact = tree_of(program._replace(free=np.zeros_like(program.free)), library)
    ways = {placement: _written(exact, placement, fits) for placement in form.placements}
    if any(way is not None and _are_equal(way, program) for way in ways.values()):
        return fit
    for placement, way in ways.items():
        if way is None:
            continue
        tried = [FittedProgram(way, fits.nmse(way)), *_fitted(program, placement, fits)]
        kept = [other for other in tried if _is_preferred(other, fit, fits)]
        if kept:
            return min(kept, key=lambda other: score(other.program, library))
    return fit


def _fitted(program: FreeProgram, placement: str, fits: Fits) -> list[FittedProgram]:
    """Return the program with its scale in another place and its constants fitted, unless it has no such way.

    Simple numbers of a formula need not be simple in another way to write it.
    """
    free = program._replace(free=np.ones_like(program.free))  # simple exponents are exact again in its tree
    way = _written(tree_of(free, fits.library), placement, fits)
    if way is None:
        return []
    start = fits.refitted(way)
    return [rounded(with_simple_numbers(start, start.nmse, fits), fits)]


def _is_preferred(other: FittedProgram, fit: FittedProgram, fits: Fits) -> bool:
    """Whether a formula in the usual way fits as well as the same in another, and is hardly longer."""
    return (
        _n_numbers(other.program) <= _n_numbers(fit.program)
        and score(other.program, fits.library) <= score(fit.program, fits.library) + _MOST_LONGER
        and fits.is_as_good(other.nmse, fit.nmse)
        and _form_of(other.program, fits) is _form_of(fit.program, fits)
    )


def _form_of(program: FreeProgram, fits: Fits) -> CommonForm | None:
    """Return the common form that a program has as a whole, or None."""
    (whole, *_) = named_parts(fits.library, program.tokens.tolist(), program.constants.tolist())
    return None if whole is None else whole.form


def _n_numbers(program: FreeProgram) -> int:
    """Return how many numbers other than 1 a program has."""
    return int((program.constants != 1.0).sum())


def _written(tree: Tree, placement: str, fits: Fits) -> FreeProgram | None:
    try:
        return written(merge(tree, placement), fits.library)
    except (ValueError, ArithmeticError):
        return None


def _are_equal(a: FreeProgram, b: FreeProgram) -> bool:
    same_tokens = np.array_equal(a.tokens, b.tokens)
    return same_tokens and np.allclose(a.constants, b.constants, rtol=1e-9, atol=0.0)
