"""Evolution of the unknown functions of a form, each by the genetic operators of whole programs.

A child differs from its parent in one function, which is crossed over and mutated with the same function of
other programs. So every function has its own arguments as its only columns, and its own length.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.formulas.common_forms import COMMON_FORMS
from dgsr.expressions.formulas.description_length import prior_weights
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.random import next_uint64
from dgsr.search.evolution.compiled import CompiledEvolution, random_population
from dgsr.search.evolution.engine import Bred, EvolutionConfig

# Share of the random functions of one argument that are common forms. Of fifteen searches for five laws, of
# 40,000 equations each, 9 found the law without any, in 386,000 equations, and 10 with a half, in 323,000.
_SHARE_OF_COMMON_FORMS = 0.5
# Largest logarithm to base 10 of the size of a random constant of a form without functions.
_LARGEST_SIZE = 2.0


class Forests:
    """Forests of one form: random ones, and their trees.

    `widths` are the most tokens and constants of a forest, and the grammar is that of whole programs.
    """

    def __init__(self, form: Form, library: Library, grammar: Grammar, widths: tuple[int, int]) -> None:
        self.form, self.library, self.widths = form, library, widths
        self.grammars = [self._grammar(f, grammar) for f in range(len(form.functions))]

    def _grammar(self, f: int, grammar: Grammar) -> Grammar:
        """Return the grammar of a function, with its arguments as variables and what room the form leaves."""
        first = self.library.first_variable
        own = grammar._replace(
            is_variable=np.isin(np.arange(len(self.library)) - first, np.arange(self.form.n_arguments[f])),
            min_length=1,
            max_length=self.form.most_tokens(f, grammar.max_length),
        )
        return own._replace(weight=prior_weights(own, self.library))

    def random(self, n: int, state: np.ndarray) -> Population:
        """Return random forests; those of a form without functions have random constants."""
        outside = np.ones((n, self.form.n_outside))
        outside[:, len(self.form.constants) + 1 :: 2] = 0.0  # offsets
        if not self.grammars:
            rng = np.random.default_rng(int(next_uint64(state)))
            signs = rng.choice([-1.0, 1.0], outside.shape)
            outside = signs * 10.0 ** rng.uniform(-_LARGEST_SIZE, _LARGEST_SIZE, outside.shape)
        trees = [self._random_trees(f, n, state) for f in range(len(self.grammars))]
        return self.joined(outside, trees)

    def common(self, n: int, state: np.ndarray) -> Population:
        """Return at most n forests: all combinations of the most common forms, as many of each function.

        Functions of several arguments are random. The form must have a function.
        """
        k = len(self.grammars)
        n_each = int(n ** (1.0 / k))
        each = [self._commonest(f, n_each, state) for f in range(k)]
        numbers = np.indices([len(trees) for trees in each]).reshape(k, -1)
        outside = np.ones((numbers.shape[1], self.form.n_outside))
        outside[:, len(self.form.constants) + 1 :: 2] = 0.0  # offsets
        return self.joined(outside, [trees[own] for trees, own in zip(each, numbers)])

    def _commonest(self, f: int, n: int, state: np.ndarray) -> Population:
        """Return at most n programs of a function: forms of the largest weights where it has one argument."""
        grammar, (forms, weights) = self.grammars[f], self._common_forms
        if self.form.n_arguments[f] > 1:
            return random_population(n, self.library, grammar, state)
        fits = are_valid(forms.tokens, forms.lengths, grammar)
        best = np.argsort(-weights * fits, kind="stable")[: min(n, int(fits.sum()))]
        return forms[best].of_width(grammar.max_length, grammar.max_constants)

    def _random_trees(self, f: int, n: int, state: np.ndarray) -> Population:
        """Return random programs of a function; of one argument a part has common forms."""
        grammar = self.grammars[f]
        trees = random_population(n, self.library, grammar, state)
        forms, weights = self._common_forms
        fits = are_valid(forms.tokens, forms.lengths, grammar)
        if self.form.n_arguments[f] > 1 or not fits.any():
            return trees
        rng = np.random.default_rng(int(next_uint64(state)))
        shares = weights * fits
        drawn = forms[rng.choice(len(forms), n, p=shares / shares.sum())]
        own = Population.concatenate([drawn, trees]).of_width(grammar.max_length, grammar.max_constants)
        is_common = rng.random(n) < _SHARE_OF_COMMON_FORMS
        return own[np.where(is_common, np.arange(n), n + np.arange(n))]

    @cached_property
    def _common_forms(self) -> tuple[Population, np.ndarray]:
        """The common forms of one column that the library can write, and their weights."""
        column, found = self.library.first_variable, []
        for form in COMMON_FORMS:
            if (program := form.program(self.library, column)) is not None:
                tokens, numbers = program
                constants = [1.0 if isinstance(number, str) else number for number in numbers]
                found.append((Expression(self.library, tokens, constants), form.weight))
        expressions, weights = zip(*found)
        return Population.from_expressions(expressions), np.array(weights)

    def trees(self, forests: Population) -> list[Population]:
        """Return the trees of each function, in arrays as wide as its grammar needs."""
        tokens, is_constant = forests.tokens, forests.is_constant
        number = self.form.functions_of(tokens, forests.lengths)
        of_constant, _ = _gathered(number, is_constant, forests.constants.shape[1], -1)
        found = []
        for f, grammar in enumerate(self.grammars):
            own, lengths = _gathered(tokens, number == f, grammar.max_length, 0)
            constants, _ = _gathered(forests.constants, of_constant == f, grammar.max_constants, 1.0)
            found.append(Population(self.library, own, lengths, constants))
        return found

    def joined(self, outside: np.ndarray, trees: list[Population]) -> Population:
        """Return forests of the constants outside of the functions, (n, n_outside), and their trees."""
        own = [np.full(outside.shape, self.form.tokens.constant), *(t.tokens for t in trees)]
        values = [outside, *(t.constants for t in trees)]
        inside, has = [np.ones(outside.shape, dtype=bool)], [np.ones(outside.shape, dtype=bool)]
        inside += [np.arange(t.tokens.shape[1]) < t.lengths[:, None] for t in trees]
        has += [np.arange(t.constants.shape[1]) < t.is_constant.sum(axis=1)[:, None] for t in trees]
        tokens, lengths = _gathered(np.hstack(own), np.hstack(inside), self.widths[0], 0)
        constants, _ = _gathered(np.hstack(values), np.hstack(has), self.widths[1], 1.0)
        return Population(self.library, tokens, lengths, constants)


class ForestEvolution(CompiledEvolution):
    """The compiled engine of genetic programming, for forests; nothing evolves without functions.

    The grammar of whole programs is not read, since every function has its own.
    """

    def __init__(self, config: EvolutionConfig, forests: Forests) -> None:
        super().__init__(config if forests.grammars else replace(config, generations=0))
        self.forests = forests

    def _bred(self, forests: Population, nmse: np.ndarray, grammar: Grammar, state: np.ndarray) -> Bred:
        trees, n = self.forests.trees(forests), len(forests)
        rng = np.random.default_rng(int(next_uint64(state)))
        # Neighbours are crossed over, so that they change in the same function.
        varied = np.repeat(rng.integers(len(trees), size=(n + 1) // 2), 2)[:n]
        parents, changed = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
        fitness, found = self.config.fitness(forests, nmse), []
        for f, (own_grammar, own) in enumerate(zip(self.forests.grammars, trees, strict=True)):
            offspring = self._offspring(own, fitness, own_grammar, state)
            here = varied == f
            parents[here], changed[here] = offspring.parents[here], offspring.changed[here]
            found.append(Population(own.library, *offspring.programs))
        children = []
        for f, (own, new) in enumerate(zip(trees, found, strict=True)):
            child = own[parents]
            for array, values in zip(child.arrays, new.arrays, strict=True):
                array[varied == f] = values[varied == f]
            children.append(child)
        outside = forests.constants[parents, : self.forests.form.n_outside]
        return self.forests.joined(outside, children), nmse[parents], changed


def _gathered(values: np.ndarray, mask: np.ndarray, width: int, fill: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the marked values of every row from its beginning on, and their numbers; the rest is `fill`."""
    counts = mask.sum(axis=1)
    found = np.full((len(values), width), fill, dtype=values.dtype)
    found[np.arange(width) < counts[:, None]] = values[mask]
    return found, counts
