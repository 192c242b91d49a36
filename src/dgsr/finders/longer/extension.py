"""Extension of formulas by terms at any of their nodes, for data that no short formula fits.

A term t joins a formula at a node v as v + c*t or as v*(b + c*t). To first order this changes the values of
the formula by its derivative with respect to v, times t or times v*t. Inner products therefore give, for all
nodes and terms at once, the share of the residuals that each would explain besides the constants of the
formula: orthogonal matching pursuit in the space of tangents. The best extensions are fitted, and the one
with the shortest description of formula and residuals is extended further.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.constants.uncertainty import derivatives
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits
from dgsr.finders.finder import Deadline, Problem, never
from dgsr.finders.longer.sums import LEAST_NEW, MOST_TERMS, PATIENCE, ROWS_PER_CONSTANT, STEPS
from dgsr.finders.terms import (
    BITS_OF_TERM,
    Term,
    TermPool,
    population_of,
    simple_terms,
    sines_of,
    subprograms,
    terms_of,
)

# Values, terms times rows, of the first comparison. Of a thousand terms these are 150 rows.
_MOST_VALUES = 150_000
# Extensions of a step that are compared on all rows, and that are fitted.
_N_COMPARED = 300
_N_FITTED = 6
# Most tokens times rows that are evaluated for all programs, in about a quarter of a second.
_MOST_WORK = 4e8
# Step of the central differences, relative to the root mean square of the node.
_STEP = 1e-5


class _Node(NamedTuple):
    """A subprogram, as slices of the tokens and of the constants of its program."""

    tokens: slice
    constants: slice
    is_argument_of_sine: bool  # whether it is an operand of a sine or cosine


def extended(
    programs: Population, problem: Problem, max_length: int, deadline: Deadline = never
) -> Population:
    """Return programs extended by terms, as long as these shorten the description of the data.

    The library has ``add``, ``mul`` and ``const``. The programs after every step that shortens the
    description are returned, with fitted constants and at most `max_length` tokens. The deadline is called
    before each step.
    """
    extender, most_work = Extender(problem, max_length), _MOST_WORK / max(len(programs), 1)
    steps = (_steps(extender, program, most_work, deadline) for program in terms_of(programs))
    return population_of(programs.library, [program for each in steps for program in each])


def _steps(extender: Extender, program: Term, most_work: float, deadline: Deadline) -> list[Term]:
    """Return the extended program after every step that shortens the description."""
    data, library = extender.data, extender.library

    def shortest(programs: list[Term]) -> tuple[Term, float]:
        population = population_of(library, programs)
        fit = fit_constants(population, data, scaled=False, n_iterations=STEPS)
        bits = structure_bits(library, population.tokens, population.lengths)
        bits += data.bits_of_residuals(fit.nmse)
        best = int(np.argmin(bits))
        return terms_of(population[best : best + 1])[0], float(bits[best])

    found: list[Term] = []
    program, least = shortest([program])
    n_stale, work = 0, 0.0
    for _ in range(MOST_TERMS):
        # Tangents take two evaluations for every node, and an iteration of a fit as long as five evaluations.
        length = len(program[0])
        work += (2.0 * length + 5.0 * _N_FITTED * STEPS) * length * len(data.y)
        goes_on = n_stale < PATIENCE and work < most_work and np.isfinite(least) and not deadline()
        candidates = extender.candidates(program) if goes_on else []
        if not candidates:
            break
        program, bits = shortest(candidates)
        n_stale += 1
        if bits < least:
            least, n_stale = bits, 0
            found.append(program)
    return found


class Extender:
    """Selection of the terms that improve a program the most; see `extended` for the parameters."""

    def __init__(self, problem: Problem, max_length: int) -> None:
        data, library = problem.data, problem.library
        self.data, self.library, self.max_length = data, library, max_length
        pool = TermPool.of(simple_terms(library, problem.grammar), problem).simplest_first()
        # The first term is the number 1.
        self._terms = [(), *pool.tokens]
        values = pool.values / np.abs(pool.values).max(axis=1, keepdims=True)
        self._values, self._bits = np.vstack([np.ones(len(data.y)), values]), np.append(0.0, pool.bits)
        self._sines = sines_of(library)
        self._is_turning = np.array([bool(self._sines.intersection(term)) for term in self._terms])
        self._root = np.sqrt(data.weights)
        n_rows = _MOST_VALUES // len(self._terms)
        self._few = slice(None, None, int(np.ceil(len(data.y) / n_rows)))

    @np.errstate(all="ignore")  # terms that overflow are left out
    def candidates(self, program: Term) -> list[Term]:
        """Return at most six extensions with the shortest expected descriptions.

        The program must be fitted, or would be with a scale and an offset. The extensions have its values,
        since their new constants have not been fitted.
        """
        nodes = self._nodes(program[0])
        slopes, values = self._tangents(program, nodes)
        slopes = np.concatenate([slopes, slopes * values]) * self._root
        fitted, target = self._fitted(program), self.data.y * self._root
        bits = np.repeat([BITS_OF_TERM, 2.0 * BITS_OF_TERM], len(nodes))[:, None] + self._bits
        bits[np.ix_(np.tile([node.is_argument_of_sine for node in nodes], 2), self._is_turning)] = np.inf
        is_finite = np.isfinite(slopes).all(axis=1)
        bits[~is_finite], slopes[~is_finite] = np.inf, 0.0
        few = self._few
        gains = _least_gains(slopes[:, few], self._values[:, few], target[few], fitted[few])
        best = np.argsort(bits + self._change(gains), axis=None, kind="stable")[:_N_COMPARED]
        at, term = np.divmod(best[np.isfinite(bits.flat[best])], len(self._terms))
        gains = _gains(slopes[at] * self._values[term], target, fitted)
        changes = bits[at, term] + self._change(gains)
        found = []
        for i in np.argsort(changes, kind="stable")[:_N_FITTED].tolist():
            is_factor, node = at[i] >= len(nodes), nodes[at[i] % len(nodes)]
            found.append(self._joined(program, node, self._terms[term[i]], is_factor))
        room = self.data.n_independent / ROWS_PER_CONSTANT
        return [term for term in found if len(term[0]) <= self.max_length and len(term[1]) <= room]

    def _change(self, gains: np.ndarray) -> np.ndarray:
        """Return the change of the bits of residuals when shares of their squares are explained."""
        return self.data.bits_of_residuals(np.maximum(1.0 - gains, 1e-30))

    def _joined(self, program: Term, node: _Node, term: tuple[int, ...], is_factor: bool) -> Term:
        """Return a program with a term joined at a node, whose new constants do not change its values."""
        add, mul, const = (self.library.index[name] for name in ("add", "mul", "const"))
        new: tuple[int, ...]
        if is_factor:
            new, own = ((mul, add, const, mul, const, *term), (1.0, 0.0)) if term else ((mul, const), (1.0,))
        else:
            new, own = ((add, mul, const, *term) if term else (add, const)), (0.0,)
        return _inserted(program, node, new, own)

    def _nodes(self, tokens: tuple[int, ...]) -> list[_Node]:
        """Return the nodes of a program, in the order of its tokens."""
        places = subprograms(self.library, tokens)
        is_argument_of_sine = np.zeros(len(tokens), dtype=bool)
        for token, (own, _) in zip(tokens, places, strict=True):
            if token in self._sines:
                is_argument_of_sine[own.start + 1 : own.stop] = True
        return [_Node(*place, bool(under)) for place, under in zip(places, is_argument_of_sine, strict=True)]

    def _tangents(self, program: Term, nodes: list[_Node]) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of a program by its nodes, and the values of these, (n_nodes, n_rows)."""
        (tokens, constants), X = program, self.data.columns.T
        add, const = self.library.index["add"], self.library.index["const"]
        own = [(tokens[n.tokens], constants[n.constants]) for n in nodes]
        values = population_of(self.library, own).predict(X)
        sizes = np.sqrt(np.mean(values**2, axis=1))
        steps = _STEP * np.where(np.isfinite(sizes) & (sizes > 0.0), sizes, 1.0)
        moved = [
            _inserted(program, node, (add, const), (sign * step,))
            for sign in (1.0, -1.0)
            for node, step in zip(nodes, steps.tolist())
        ]
        above, below = np.split(population_of(self.library, moved).predict(X), 2)
        return (above - below) / (2.0 * steps[:, None]), values

    def _fitted(self, program: Term) -> np.ndarray:
        """Return an orthonormal basis, (n_rows, n_fitted), of weighted derivatives, values and ones."""
        tokens, constants = np.array(program[0]), np.array(program[1])
        groups, columns = [np.array([i]) for i in range(len(constants))], self.data.columns
        own = derivatives(self.library, tokens, constants, groups, columns)
        values = population_of(self.library, [program]).predict(columns.T)
        own = np.vstack([own, values, np.ones(len(self._root))]) * self._root
        own /= np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-300)
        own = own[np.isfinite(own).all(axis=1)]
        basis, sizes, _ = np.linalg.svd(own.T, full_matrices=False)
        return basis[:, sizes > 1e-8 * sizes.max()]


def _least_gains(slopes: np.ndarray, terms: np.ndarray, target: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Return a lower bound of `_gains` of slopes times terms: those with all other constants fixed."""
    residuals, _ = _without(target, fitted)
    explained = ((slopes * residuals) @ terms.T) ** 2
    whole = slopes**2 @ (terms**2).T
    return explained / np.maximum(whole * (residuals @ residuals), 1e-300)


def _gains(tangents: np.ndarray, target: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Return the share of the squared residuals that each tangent explains besides the fitted columns.

    It is 0 for tangents that are nearly combinations of the fitted columns, (n_rows, n_fitted).
    """
    residuals, basis = _without(target, fitted)
    whole = (tangents**2).sum(axis=1)
    left = whole - ((tangents @ basis) ** 2).sum(axis=1)
    is_new = left > LEAST_NEW**2 * whole
    explained = np.where(is_new, (tangents @ residuals) ** 2 / np.where(is_new, left, 1.0), 0.0)
    return explained / max(float(residuals @ residuals), 1e-300)


def _inserted(program: Term, node: _Node, new: tuple[int, ...], own: tuple[float, ...]) -> Term:
    """Return a program with new tokens, and their own constants, before a node."""
    (tokens, constants), at, place = program, node.tokens.start, node.constants.start
    return (*tokens[:at], *new, *tokens[at:]), (*constants[:place], *own, *constants[place:])


def _without(target: np.ndarray, fitted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the residuals of a target after a fit of some columns, and an orthonormal basis of these."""
    basis, _ = np.linalg.qr(fitted)
    return target - basis @ (basis.T @ target), basis
