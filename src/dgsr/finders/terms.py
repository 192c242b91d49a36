"""Terms, the subprograms of which sums and pairs of terms consist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.trees import Tree, rename
from dgsr.finders.finder import Problem

#: Tokens of a term, and the values of its constants.
Term = tuple[tuple[int, ...], tuple[float, ...]]

# Smallest range of a term relative to its size. With less, an offset would cancel most of the term.
LEAST_VARIED = 1e-5
#: Bits that a term adds to a formula besides its own: an addition, a multiplication and a constant. The prior
#: gives 14 to 19 by what stands beside it, and a factor (1 + c*t) twice as many.
BITS_OF_TERM = 12.0
# Most values, terms times rows, and most rows, on which terms are compared.
_MOST_VALUES = 2_000_000
_MOST_ROWS = 2_000
#: Fewest rows for each constant of a formula, scale and offset included.
LEAST_ROWS_PER_CONSTANT = 2
#: Most columns to which forms are fitted, and of a table that is searched for quotients and for symmetries.
WIDEST_TABLE = 12
_UNARY = ("square", "cube", "sqrt", "log", "inv", "exp", "tanh", "sin", "cos")


class TermPool(NamedTuple):
    """Terms from which a finder selects."""

    terms: list[Term]
    values: np.ndarray  # (n_terms, n_rows)
    bits: np.ndarray  # (n_terms,), of their structure

    @classmethod
    def of(cls, terms: Iterable[Term], problem: Problem, least_varied: float = LEAST_VARIED) -> TermPool:
        """Return the distinct terms that satisfy the rules of units and are usable on the rows of a problem.

        A usable term is finite, between 1e-100 and 1e100 in size, and its range is more than a share
        `least_varied` of its largest size.
        """
        distinct = list(dict.fromkeys(terms))
        programs = population_of(problem.library, distinct)
        with np.errstate(all="ignore"):
            values = programs.predict(problem.data.columns.T)
            sizes = np.abs(values).max(axis=1)
            is_usable = np.isfinite(values).all(axis=1) & (sizes > 1e-100) & (sizes < 1e100)
            is_usable &= np.ptp(values, axis=1) > least_varied * sizes
        bits = structure_bits(problem.library, programs.tokens, programs.lengths)
        usable = np.flatnonzero(is_usable & problem.valid.terms(programs))
        return cls(distinct, values, bits).chosen(usable)

    @property
    def tokens(self) -> list[tuple[int, ...]]:
        """The tokens of the terms, without their constants."""
        return [tokens for tokens, _ in self.terms]

    def chosen(self, numbers: np.ndarray) -> TermPool:
        """Return some of the terms, in the given order."""
        return TermPool([self.terms[i] for i in numbers], self.values[numbers], self.bits[numbers])

    def simplest_first(self) -> TermPool:
        """Return the terms in the order of their bits."""
        return self.chosen(np.argsort(self.bits, kind="stable"))


def sample_for(n_terms: int, data: DataSet) -> DataSet:
    """Return the rows on which this many terms are compared, at least ten of a larger table."""
    return data.evenly_spaced(min(_MOST_ROWS, max(_MOST_VALUES // max(n_terms, 1), 10)))


def sines_of(library: Library) -> set[int]:
    """Return the tokens of the sine and the cosine, none of which stands inside another."""
    return {library.index[name] for name in ("sin", "cos") if name in library.index}


def columns_of(grammar: Grammar) -> list[tuple[int, ...]]:
    """Return the columns that may be used, as terms."""
    return [(token,) for token in np.flatnonzero(grammar.is_variable).tolist()]


def functions_of(library: Library, terms: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all unary functions of every term, except a sine or cosine inside another."""
    unary = [library.index[name] for name in _UNARY if name in library.index]
    sines = sines_of(library)
    return [
        (operator, *term)
        for term in terms
        for operator in unary
        if not (operator in sines and sines.intersection(term))
    ]


def joined(
    library: Library,
    terms: Sequence[tuple[int, ...]],
    others: Sequence[tuple[int, ...]],
    names: Sequence[str] = ("mul", "div", "add", "sub"),
) -> list[tuple[int, ...]]:
    """Return all pairs of a term and another, joined by each operator, in both orders if these differ."""
    found = []
    for name in (name for name in names if name in library.index):
        operator, is_symmetric = library.index[name], name in ("mul", "add")
        either_way = is_symmetric and terms is others
        found += [(operator, *a, *b) for a in terms for b in others if not (either_way and b < a)]
        if not is_symmetric and terms is not others:
            found += [(operator, *b, *a) for a in terms for b in others]
    return found


def simple_terms(library: Library, grammar: Grammar, n: int = 1_000) -> list[Term]:
    """Return at most n terms: the columns, functions of one of them, and products and quotients of two."""
    columns = columns_of(grammar)
    few = columns[: int(np.sqrt(n))]
    products = [term for term in joined(library, few, few, ("mul", "div")) if term[1:2] != term[2:]]
    return [(term, ()) for term in [*columns, *functions_of(library, columns), *products][:n]]


def population_of(library: Library, terms: Sequence[Term]) -> Population:
    """Return terms as a population whose arrays are as wide as the longest term."""
    width = max((len(tokens) for tokens, _ in terms), default=1)
    n_constants = max((len(constants) for _, constants in terms), default=0)
    population = Population.empty(len(terms), library, width, max(n_constants, 1))
    for i, (tokens, constants) in enumerate(terms):
        population.tokens[i, : len(tokens)] = tokens
        population.lengths[i] = len(tokens)
        population.constants[i, : len(constants)] = constants
    return population


def terms_of(population: Population) -> list[Term]:
    """Return the programs of a population as terms."""
    tokens, constants = population.tokens.tolist(), population.constants.tolist()
    rows = zip(tokens, population.lengths, constants, population.is_constant.sum(axis=1))
    return [(tuple(own[:n]), tuple(inner[:n_constants])) for own, n, inner, n_constants in rows]


def term_of(tree: Tree, library: Library) -> Term | None:
    """Return a tree as a program, or None if the library lacks an operator."""
    try:
        tokens, constants = to_program(tree, library)
    except ValueError:
        return None
    return tuple(tokens.tolist()), tuple(constants.tolist())


def over_columns(tree: Tree, columns: Sequence[Tree]) -> Tree:
    """Return a tree of the columns x1, x2 and so on with the given trees in their places."""
    return rename(tree, {f"x{i + 1}": column for i, column in enumerate(columns)})


def orthogonal(values: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return values, or each row of them, minus their projection onto a direction of length 1."""
    return values - np.multiply.outer(values @ direction, direction)


def subprograms(library: Library, tokens: Sequence[int]) -> list[tuple[slice, slice]]:
    """Return the slices of the tokens and of the constants of the subprogram at each token."""
    arity, const = library.table.arity, library.index["const"]
    places = np.concatenate([[0], np.cumsum(np.asarray(tokens) == const)])
    stops = [0] * (len(tokens) + 1)
    found = []
    for start in range(len(tokens) - 1, -1, -1):
        stop = start + 1
        for _ in range(arity[tokens[start]]):
            stop = stops[stop]
        stops[start] = stop
        found.append((slice(start, stop), slice(int(places[start]), int(places[stop]))))
    return found[::-1]
