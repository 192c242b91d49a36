"""Programs of a form as the formulas a person would write, whose functions keep their places in the form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram
from dgsr.finishing.fits import Fits, OutOfTime
from dgsr.finishing.forms import rewritings
from dgsr.finishing.programs import are_equal, score, tree_of, written
from dgsr.finishing.snapping import rounded, with_simple_numbers
from dgsr.kernels.programs import Programs

# Most rounds of snapping and merging for one formula.
_MOST_ROUNDS = 10


def finish_in_form(
    programs: Population,
    data: DataSet,
    form: Form,
    tolerance: float,
    is_valid: Callable[[Population], np.ndarray],
    is_over: Callable[[], bool],
    known: dict[bytes, Expression],
) -> list[Expression]:
    """Return programs of a form with merged constants in each function, and simple numbers.

    Whatever is rewritten stays inside of its function. `is_valid` returns a mask of the programs that meet
    the constraints, which rewriting must not break. The others are the parameters of `dgsr.finishing.finish`.
    """
    formulas = list[Expression]()
    fits = Fits(data, programs.library, tolerance, is_over, copies_are_tied=True)
    for i in range(len(programs)):
        raw = programs[i]
        key = raw.tokens.tobytes() + raw.constants.tobytes()
        try:
            if key not in known:
                parts = form.read(raw.tokens, raw.constants)
                assert parts is not None
                program = FreeProgram(raw.tokens, raw.constants.copy(), parts.origins >= 0)
                known[key] = _finished(program, form, fits, is_valid)
            formulas.append(known[key])
        except OutOfTime:
            formulas.append(raw)
    return formulas


def _finished(
    program: FreeProgram, form: Form, fits: Fits, is_valid: Callable[[Population], np.ndarray]
) -> Expression:
    def breaks_rules(program: FreeProgram) -> bool:
        return not is_valid(Population.of_one(form.library, program.tokens, program.constants[None]))[0]

    fit = fits.refitted(program)
    limit, was_broken = fit.nmse, breaks_rules(program)
    for _ in range(_MOST_ROUNDS):
        before = fit.program
        shorter = fits.refitted(_merged(before, form))
        is_able = was_broken or not breaks_rules(shorter.program)
        if is_able and fits.is_as_good(shorter.nmse, max(limit, fit.nmse)):
            fit = shorter
        fit = with_simple_numbers(fit, limit, fits)
        if are_equal(fit.program, before, 0.0):
            break
    fit = rounded(fit, fits)
    return Expression(form.library, fit.program.tokens, fit.program.constants)


def _merged(program: FreeProgram, form: Form) -> FreeProgram:
    """Return a program with the constants of each function merged, in a form without scales and offsets."""
    parts = form.read(program.tokens, program.constants)
    assert parts is not None
    n = max(int(parts.origins.max(initial=-1)) + 1, form.n_outside)
    constants, free = np.ones(n), np.zeros(n, dtype=bool)
    of_forest = parts.origins >= 0
    constants[parts.origins[of_forest]] = program.constants[of_forest]
    free[parts.origins[of_forest]] = program.free[of_forest]
    at = form.n_outside
    pieces = [FreeProgram(np.array(form.forest([]), dtype=np.int64), constants[:at], free[:at])]
    for tokens in parts.functions:
        stop = at + tokens.count(form.tokens.constant)
        own = FreeProgram(np.array(tokens, dtype=np.int64), constants[at:stop], free[at:stop])
        pieces.append(_merged_function(own, form.library))
        at = stop
    return _filled(form, FreeProgram(*map(np.concatenate, zip(*pieces))))


def _merged_function(own: FreeProgram, library: Library) -> FreeProgram:
    """Return the simplest way to write a function, which may be its own."""
    ways = [own]
    for tree in rewritings(tree_of(own, library)):
        with contextlib.suppress(ValueError, ArithmeticError):
            ways.append(written(tree, library))
    return min(ways, key=lambda way: round(score(way, library), 6))


def _filled(form: Form, forest: FreeProgram) -> FreeProgram:
    """Return the whole program of a forest, with the flags of its constants."""
    length = len(forest.tokens)
    row = Programs(forest.tokens[None], np.array([length]), forest.constants[None])
    n = len(form.code.kinds)  # with the arguments, which each variable of a function may become
    most = n + (n + len(form.code.functions)) * length
    filled = form.filled(row, most, most, np.zeros((1, len(form.functions), 2), dtype=np.bool_))
    tokens = filled.programs.tokens[0, : filled.programs.lengths[0]]
    n_constants = int((tokens == form.tokens.constant).sum())
    origins = filled.origins[0, :n_constants]  # -1 for constants that are not those of the forest
    is_free = np.append(forest.free, False)[origins]
    return FreeProgram(tokens, filled.programs.constants[0, :n_constants], is_free)
