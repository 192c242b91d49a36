"""Sums and products of short programs, in a library with fitted constants: what a search is told at once.

Of a law with unknown constants nothing can be looked up by its values. But where all that is unknown of a sum
are its coefficients, they are a linear regression, and so it can be tried for millions of pairs of functions;
and of a product of powers so is the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import Library, Opcode
from dgsr.kernels.catalogue import Catalogue, new_catalogue
from dgsr.kernels.dictionary import rows_to_look_at
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.sums import explain, fill_values, find_partners, standardise
from dgsr.population import DataSet, Population

# Programs of the catalogue.
_SIZE = 1 << 16
# Points at which they are told apart but for scale and offset, and to how many parts of the norm.
_N_POINTS, _PARTS = 16, 10_000
# Rows for every function of a sum: with fewer, some of so many fit anything.
_ROWS_EACH, _MOST = 8, 3
# What a second function is looked for to, the best alone and the simplest, and a third: the best pairs.
_N_BEST, _N_SIMPLE, _N_PAIRS = 128, 128, 64
# Sums told of one cover with each number of functions: those of more fit the noise better.
_N_TOLD = 16
# Short programs tried as a factor of what is under a cover.
_N_FACTORS = 192
# What is left by a factor is not looked at where one row has so much of its square root: that fits anything.
_UNEVEN = 0.7
# A coefficient or power as near to a simple one is that; one of so much of the others is none.
_SAME, _NOTHING = 1e-4, 1e-6
# Powers that are written with simple ones beside those fitted, if all are as near.
_NEAR = 0.1
# The least slope of a cover's inverse, of its mean.
_FLATTEST = 1e-3


class Cover(NamedTuple):
    """What is around a sum."""

    tokens: tuple[str, ...]
    of_one_sign: bool  # whether the target must be
    undo: Callable[[np.ndarray], np.ndarray]  # what the sum must be, but for its scale
    slope: Callable[[np.ndarray], np.ndarray]  # of `undo`


#: Not a sum but a product of powers: its logarithm is one.
PRODUCT = Cover(("mul",), False, lambda y: np.log(np.abs(y)), lambda y: 1.0 / y)
#: In the order of a search.
COVERS = (
    Cover((), False, lambda y: y, np.ones_like),
    PRODUCT,
    Cover(("inv",), False, lambda y: 1.0 / y, lambda y: y**-2.0),
    Cover(("exp",), True, lambda y: np.log(np.abs(y)), lambda y: 1.0 / y),
    Cover(("sqrt",), True, np.square, lambda y: 2.0 * y),
    Cover(("square",), True, lambda y: np.sqrt(np.abs(y)), lambda y: 0.5 * np.abs(y) ** -0.5),
    Cover(("inv", "sqrt"), True, lambda y: y**-2.0, lambda y: 2.0 * y**-3.0),
)


_Fitting = tuple[float, tuple[int, ...]]  # what share of the target's square is left, by which functions


class Written(NamedTuple):
    """A program in the making."""

    tokens: list[int]
    constants: list[float]


@lru_cache(maxsize=8)
def _catalogue(library: Library, n_variables: int) -> tuple[Catalogue, np.ndarray, np.ndarray]:
    """The short programs, and those that differ in a sum and in a product: the shortest of each kind."""
    catalogue = new_catalogue(library.table.opcode, library.table.argument, n_variables, _SIZE)
    values = _values(catalogue, np.random.default_rng(0).uniform(0.5, 3.0, (n_variables, _N_POINTS)))
    shortest = np.argsort(catalogue.length, kind="stable")
    kinds = []
    for own in (values, _logarithms(values)):
        rows = _standardised(own, np.ones(_N_POINTS))[shortest]
        rows *= np.where(rows[:, :1] < 0.0, -1.0, 1.0)
        _, first = np.unique(np.round(rows * _PARTS), axis=0, return_index=True)
        kinds.append(shortest[np.sort(first)])
    return catalogue, kinds[0], kinds[1]


def _values(catalogue: Catalogue, columns: np.ndarray) -> np.ndarray:
    values = np.empty((len(catalogue.token), columns.shape[1]))
    programs = catalogue.opcode, catalogue.address, catalogue.first, catalogue.second
    fill_values(*programs, columns, values)
    return values


def _logarithms(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.abs(values))


def _standardised(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.empty(values.shape, dtype=np.float32)
    standardise(values, weights, out)
    return out


class Sums:
    """The short programs of a library on a data set, and the sums of them that fit it.

    Parameters
    ----------
    library : Library
        With fitted constants.
    data : DataSet
    grammar : Grammar
        What does not meet it is left out.
    n_constants : int
        Of a program at most.
    """

    def __init__(self, library: Library, data: DataSet, grammar: Grammar, n_constants: int) -> None:
        self.library, self.grammar, self.n_constants = library, grammar, n_constants
        rows = rows_to_look_at(len(data.y))
        self._columns = np.ascontiguousarray(data.columns[:, rows])
        self._y, self._weights = data.y[rows], data.weights[rows]
        self._most = min(len(rows) // _ROWS_EACH, _MOST)

    @cached_property
    def _programs(self) -> tuple[Catalogue, np.ndarray, np.ndarray, np.ndarray]:
        known = _catalogue(self.library, self.library.n_variables)
        return *known, _values(known[0], self._columns)

    def under(self, cover: Cover) -> Population:
        """Sums of one to three short programs under a cover that fit best, their constants set."""
        if self._most == 0 or (cover.of_one_sign and self._y.min() < 0.0 < self._y.max()):
            return self._population([])
        with np.errstate(all="ignore"):
            wanted, slope = cover.undo(self._y), cover.slope(self._y)
        weights = self._weights_of(wanted, slope)
        if weights is None:
            return self._population([])
        wanted = np.where(weights > 0.0, wanted, 0.0)
        catalogue, in_sums, in_products, values = self._programs
        if cover is PRODUCT:
            numbers, own = in_products, _logarithms(values[in_products])
        else:
            numbers, own = in_sums, values[in_sums]
        programs: list[Written] = []
        for members in self._best(own, catalogue.length[numbers], wanted, weights):
            functions = own[list(members)]
            *coefficients, offset = _least_squares(functions, wanted, weights)
            sizes = np.abs(coefficients) * functions.std(axis=1)
            needed = sizes.min() > _NOTHING * sizes.max()  # else some do without the others
            if not needed or not np.isfinite(offset):
                continue
            bodies = [self._body(int(numbers[i])) for i in members]
            try:
                if cover is PRODUCT:
                    programs += self._products(list(zip(coefficients, bodies)))
                else:
                    programs.append(self._sum(cover, list(zip(coefficients, bodies)), offset))
            except KeyError:  # the library has no operator to write it with
                continue
        return self._population(programs)

    def _weights_of(self, wanted: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
        """Weights of the rows where what is wanted is off by `slope` times what y is; None without any."""
        with np.errstate(all="ignore"):
            slope = np.abs(slope)
            finite = slope[np.isfinite(slope)]
            slope = np.maximum(slope, _FLATTEST * finite.sum() / max(len(finite), 1))
            weights = np.where(np.isfinite(wanted), self._weights / slope**2, 0.0)
            weights /= weights.mean()
        return weights if np.isfinite(weights).all() else None

    def factored(self, cover: Cover) -> Population:
        """A short program times, or below, another one with scale and offset under a cover."""
        if self._most < 2 or cover is PRODUCT:
            return self._population([])
        _, in_sums, _, values = self._programs
        factors = in_sums[:_N_FACTORS]
        with np.errstate(all="ignore"):
            by = np.concatenate([values[factors], 1.0 / values[factors]])
            rest = self._y / by
            wanted, slope = cover.undo(rest), cover.slope(rest) / by
        one_sign = (rest > 0.0).all(axis=1) | (rest < 0.0).all(axis=1)
        at = np.flatnonzero(np.isfinite(wanted).all(axis=1) & (one_sign | (not cover.of_one_sign)))
        if not len(at):
            return self._population([])
        functions = _standardised(values[in_sums], self._weights)
        targets = _standardised(wanted[at], self._weights)
        even = np.abs(targets).max(axis=1) < _UNEVEN
        at, targets = at[even], np.ascontiguousarray(targets[even].T)
        nothing = np.empty((0, *targets.shape), dtype=np.float32)
        partner, explained = np.empty(len(at), dtype=np.int64), np.empty(len(at), dtype=np.float32)
        find_partners(functions, nothing, targets, partner, explained)
        found = []
        for k in np.argsort(-explained, kind="stable")[:_N_PAIRS]:
            row, inside = at[k], values[in_sums[partner[k]]][None]
            weights = self._weights_of(wanted[row], slope[row])
            if weights is None or partner[k] < 0:
                continue
            a, b = _least_squares(inside, wanted[row], weights)
            loss = float(
                np.mean(weights * (wanted[row] - a * inside[0] - b) ** 2) / _variance(wanted[row], weights)
            )
            if a != 0.0 and np.isfinite([a, b, loss]).all():
                found.append((loss, int(row), int(in_sums[partner[k]]), a, b))
        programs: list[Written] = []
        for _, row, number, a, b in sorted(found)[:_N_TOLD]:
            factor = self._body(int(factors[row % len(factors)]))
            try:
                inner = self._sum(cover, [(a, self._body(number))], b, inner=True)
                programs.append(self._joined("mul" if row < len(factors) else "div", inner, factor))
            except KeyError:
                continue
        return self._population(programs)

    def _best(
        self, own: np.ndarray, lengths: np.ndarray, wanted: np.ndarray, weights: np.ndarray
    ) -> Iterable[tuple[int, ...]]:
        """The functions of the sums that fit best."""
        functions, target = _standardised(own, weights), _standardised(wanted[None], weights)[0]
        alone = np.empty(len(functions), dtype=np.float32)
        explain(functions, target, alone)
        order = np.argsort(-alone, kind="stable")
        sums: list[_Fitting] = [(float(1.0 - alone[i]), (int(i),)) for i in order[:_N_TOLD] if alone[i] > 0.0]
        if self._most > 1:
            firsts = np.union1d(order[:_N_BEST], np.arange(min(_N_SIMPLE, len(functions))))
            pairs = _extended([(int(i),) for i in firsts if alone[i] > 0.0], functions, target)
            sums += pairs
            if self._most > 2:
                sums += _extended([members for _, members in sorted(pairs)[:_N_PAIRS]], functions, target)
        sums.sort(key=lambda entry: (entry[0], lengths[list(entry[1])].sum()))
        told = []
        for size in range(1, self._most + 1):
            told += [members for _, members in sums if len(members) == size][:_N_TOLD]
        return {tuple(sorted(members)): members for members in told}.values()

    def _sum(
        self, cover: Cover, terms: list[tuple[float, Written]], offset: float, inner: bool = False
    ) -> Written:
        """Write a sum under its cover; scale, and without a cover or a factor offset, are left to the fit."""
        if cover.tokens == ("exp",):  # whose scale is the offset in it
            offset = 0.0
        else:
            scale = max(terms, key=lambda term: len(term[1].tokens))[0]
            if cover.tokens[-1:] == ("sqrt",):
                scale = abs(scale)
            terms, offset = [(c / scale, body) for c, body in terms], offset / scale
        if (cover.tokens or inner) and abs(offset) > _NOTHING:
            terms.append((np.sign(offset), self._constant(abs(offset))))
        terms.sort(key=lambda term: term[0] < 0.0)  # the first one cannot be subtracted
        (c, body), *others = terms
        program = self._times(c, body)
        for c, body in others:
            program = self._joined("sub" if c < 0.0 else "add", program, self._times(abs(c), body))
        for name in reversed(cover.tokens):
            program = self._inverse(program) if name == "inv" else self._joined(name, program)
        return program

    def _products(self, factors: list[tuple[float, Written]]) -> list[Written]:
        """Write a product of powers: with the nearest simple ones, and with those fitted."""
        simple = [_nearest_power(p) for p, _ in factors]
        off = max(abs(p - q) / abs(q) for (p, _), q in zip(factors, simple))
        products = []
        if off <= _NEAR:
            products.append(self._product([(q, body) for q, (_, body) in zip(simple, factors)]))
        if off > _SAME and "pow" in self.library.index:
            products.append(self._product(factors))
        return products

    def _product(self, factors: list[tuple[float, Written]]) -> Written:
        program = None
        for p, body in sorted(factors, key=lambda factor: factor[0] < 0.0):  # what divides comes last
            power = self._power(abs(p), body)
            if program is None:
                program = self._inverse(power) if p < 0.0 else power
            else:
                program = self._joined("div" if p < 0.0 else "mul", program, power)
        assert program is not None
        return program

    def _power(self, p: float, body: Written) -> Written:
        simple = _nearest_power(p)
        if abs(p - simple) > _SAME * simple:
            return self._joined("pow", body, self._constant(p))
        if simple == 1.0:
            return body
        if simple == 0.5:
            return self._joined("sqrt", body)
        name = "square" if simple == 2.0 else "cube"
        if name in self.library.index:
            return self._joined(name, body)
        square = self._joined("mul", body, body)
        return square if simple == 2.0 else self._joined("mul", body, square)

    def _inverse(self, body: Written) -> Written:
        if "inv" in self.library.index:
            return self._joined("inv", body)
        return self._joined("div", self._constant(1.0), body)

    def _times(self, c: float, body: Written) -> Written:
        return body if abs(c - 1.0) <= _SAME else self._joined("mul", self._constant(c), body)

    def _constant(self, value: float) -> Written:
        return Written([self.library.index["const"]], [float(value)])

    def _joined(self, name: str, *operands: Written) -> Written:
        tokens = [self.library.index[name], *(token for operand in operands for token in operand.tokens)]
        return Written(tokens, [constant for operand in operands for constant in operand.constants])

    def _body(self, i: int) -> Written:
        """A program of the catalogue; its integers, which take many tokens there, are constants."""
        catalogue, _, _, values = self._programs
        token = int(catalogue.token[i])
        if catalogue.opcode[i] == Opcode.VARIABLE:
            return Written([token], [])
        if (values[i] == values[i, 0]).all():
            return self._constant(values[i, 0])
        operands = (catalogue.first[i], catalogue.second[i])[: self.library.table.arity[token]]
        return self._joined(self.library.tokens[token].name, *(self._body(int(k)) for k in operands))

    def _population(self, programs: Sequence[Written]) -> Population:
        width = self.grammar.max_length
        programs = [p for p in programs if len(p.tokens) <= width and len(p.constants) <= self.n_constants]
        tokens = np.zeros((len(programs), width), dtype=np.int64)
        constants = np.ones((len(programs), self.n_constants))
        for i, program in enumerate(programs):
            tokens[i, : len(program.tokens)] = program.tokens
            constants[i, : len(program.constants)] = program.constants
        lengths = np.array([len(program.tokens) for program in programs], dtype=np.int64)
        kept = are_valid(tokens, lengths, self.grammar)
        return Population(self.library, tokens[kept], lengths[kept], constants[kept])


def _variance(values: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))


def _nearest_power(p: float) -> float:
    return float(np.copysign(min((0.5, 1.0, 2.0, 3.0), key=lambda simple: abs(abs(p) - simple)), p))


def _least_squares(functions: np.ndarray, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients of the functions (size, n), and the offset."""
    rows = np.flatnonzero(weights > 0.0)
    root = np.sqrt(weights[rows])
    columns = np.vstack([functions[:, rows], np.ones(len(rows))]) * root
    size = np.abs(columns).max(axis=1)
    return np.linalg.lstsq((columns.T / size), wanted[rows] * root, rcond=None)[0] / size


def _extended(sums: list[tuple[int, ...]], functions: np.ndarray, target: np.ndarray) -> list[_Fitting]:
    """Every sum with the function that helps it most, and what share of the target's square is left."""
    if not sums:
        return []
    members = functions[np.array(sums)].astype(np.float64)  # (K, size, n)
    q, _ = np.linalg.qr(members.transpose(0, 2, 1))
    rest = target - np.einsum("kns,ks->kn", q, np.einsum("kns,n->ks", q, target))
    basis = np.ascontiguousarray(q.transpose(2, 1, 0), dtype=np.float32)
    partner, explained = np.empty(len(sums), dtype=np.int64), np.empty(len(sums), dtype=np.float32)
    find_partners(functions, basis, np.ascontiguousarray(rest.T, dtype=np.float32), partner, explained)
    left = np.square(rest).sum(axis=1) - explained
    found = zip(left, sums, partner)
    return [(float(share), (*members, int(i))) for share, members, i in found if i >= 0]
