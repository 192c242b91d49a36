"""Genetic programming on DEAP's toolbox, for users' own genetic operators and as a reference for the tests.

References
----------
Fortin et al., "DEAP: evolutionary algorithms made easy", JMLR 2012.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from numbers import Real
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.evaluation import evaluate as evaluate_tree
from dgsr.kernels.evolve import CONSTANT_SPREAD, NEGATION
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.growth import ATTEMPTS, NEW_CONSTANT
from dgsr.kernels.random import next_uint64
from dgsr.search.evolution.engine import Bred, Evolution, EvolutionConfig

if TYPE_CHECKING:
    from deap import base, gp

_DRAWING = Lock()


class DeapEvolution(Evolution):
    """The algorithm of `CompiledEvolution` on DEAP's toolbox.

    DEAP draws from the global generator of Python's `random`, which is seeded from `state` for the duration
    of every generation. The results differ from those of the compiled engine in two ways, which are due to
    DEAP's operators: node replacement and shrink never change the root, and node replacement may draw the
    token that it replaces.

    Parameters
    ----------
    configure : callable, optional
        A function that is called with the toolbox and the primitive set before the evolution, to register the
        user's own operators: ``select``, ``mate``, ``mutate`` and ``clone``; ``grow``, which writes the
        subtrees of the uniform mutation; or one of ``mutate_uniform``, ``mutate_replacement``,
        ``mutate_insertion``, ``mutate_shrink`` and, for trees with constants, ``mutate_constant``, of which
        ``mutate`` calls one. The children of ``mate`` and ``mutate`` are made to meet the constraints.
    """

    def __init__(
        self,
        config: EvolutionConfig | None = None,
        configure: Callable[[base.Toolbox, gp.PrimitiveSet], None] | None = None,
    ):
        super().__init__(config)
        self.configure = configure

    def breeder(
        self, population: Population, grammar: Grammar, state: np.ndarray
    ) -> Callable[[Population, np.ndarray], Bred]:
        from deap import algorithms

        trees = _Trees(population, grammar)
        toolbox = self._toolbox(trees)

        def bred(them: Population, of_them: np.ndarray) -> Bred:
            individuals = trees.from_population(them, of_them, self.config.fitness(them, of_them))
            with _seeded(state):
                selected = toolbox.select(individuals, len(individuals))
                offspring = algorithms.varAnd(selected, toolbox, self.config.crossover, self.config.mutation)
            children, parents = trees.to_population(offspring), trees.to_population(selected)
            return children, np.array([parent.nmse for parent in selected]), _differ(children, parents)

        return bred

    def _toolbox(self, trees: _Trees) -> base.Toolbox:
        from deap import base, gp, tools

        toolbox = base.Toolbox()
        pset = trees.pset
        toolbox.register("select", tools.selTournament, tournsize=self.config.tournament)
        toolbox.register("mate", gp.cxOnePoint)
        toolbox.register("grow", gp.genFull, min_=0, max_=self.config.mutate_max_depth)
        # `toolbox.grow` is resolved at each call, because `configure` may register another.
        toolbox.register("mutate_uniform", gp.mutUniform, expr=lambda **kw: toolbox.grow(**kw), pset=pset)
        toolbox.register("mutate_replacement", gp.mutNodeReplacement, pset=pset)
        toolbox.register("mutate_insertion", gp.mutInsert, pset=pset)
        toolbox.register("mutate_shrink", gp.mutShrink)
        toolbox.register("mutate_constant", trees.mutate_constant)

        def mutate(individual):
            kinds: tuple[str, ...] = ("uniform", "replacement", "insertion", "shrink")
            if trees.constants_of(individual):
                kinds = (*kinds, "constant")
            kind = random.choice(kinds)
            return getattr(toolbox, f"mutate_{kind}")(individual)

        toolbox.register("mutate", mutate)
        if self.configure is not None:
            self.configure(toolbox, pset)
        toolbox.decorate("mate", trees.constrained)
        toolbox.decorate("mutate", trees.constrained)
        return toolbox


class _Trees:
    """The conversion of programs to DEAP's trees and back.

    The classes of individuals are made for each call, since `deap.creator` would store them globally.
    """

    def __init__(self, population: Population, grammar: Grammar):
        from deap import base, gp

        class Fitness(base.Fitness):
            weights = (-1.0, -1.0)  # both are minimised: the fitness of the compiled engine, then the length

        class Individual(gp.PrimitiveTree):
            def __init__(self, content):
                super().__init__(content)
                self.fitness = Fitness()
                self.nmse = np.inf

        self._individual = Individual
        self._grammar = grammar
        self._library = population.library
        self._width = population.tokens.shape[1]
        self._n_constants = population.constants.shape[1]
        self.pset = primitive_set(population.library, grammar)
        self._node: list[Any] = [self.pset.mapping.get(token.name) for token in self._library.tokens]
        self._token = {node.name: i for i, node in enumerate(self._node) if node is not None}
        self._constant_token = self._library.index.get("const", -1)

    def from_population(self, population: Population, nmse: np.ndarray, fitness: np.ndarray) -> list:
        from deap import gp

        fitness = np.where(np.isnan(fitness), np.inf, fitness)
        individuals = []
        for b, length in enumerate(population.lengths):
            values = iter(population.constants[b])
            nodes = [
                gp.Terminal(float(next(values)), False, object)
                if token == self._constant_token
                else self._node[token]
                for token in population.tokens[b, :length]
            ]
            individual = self._individual(nodes)
            individual.fitness.values = (float(fitness[b]), int(length))
            individual.nmse = nmse[b]
            individuals.append(individual)
        return individuals

    def to_population(self, individuals: Sequence) -> Population:
        population = Population.empty(len(individuals), self._library, self._width, self._n_constants)
        for b, individual in enumerate(individuals):
            program, values = self._program(individual)
            population.lengths[b] = len(program)
            population.tokens[b, : len(program)] = program
            kept = values[: self._n_constants]  # a child that is not yet checked may have too many
            population.constants[b, : len(kept)] = kept
        return population

    def constants_of(self, individual) -> list[int]:
        """Return the positions of the constants of a tree."""
        tokens, _ = self._program(individual)
        return [at for at, token in enumerate(tokens) if token == self._constant_token]

    def mutate_constant(self, individual):
        """Multiply a random constant by a log-normal number, or negate it."""
        from deap import gp

        at = random.choice(self.constants_of(individual))
        old = individual[at].value
        value = float(old) if isinstance(old, Real) else NEW_CONSTANT
        negated = random.random() < NEGATION
        value *= -1.0 if negated else math.exp(random.gauss(0.0, CONSTANT_SPREAD))
        individual[at] = gp.Terminal(value, False, object)
        return (individual,)

    def constrained(self, operator):
        """Return an operator whose children meet the constraints; after failed attempts they are parents."""

        @wraps(operator)
        def attempt(*parents, **keywords):
            children: list[Any] = [None] * len(parents)
            for _ in range(ATTEMPTS):
                drafts = operator(*(deepcopy(parent) for parent in parents), **keywords)
                for i, draft in enumerate(drafts):
                    if children[i] is None and self._is_valid(draft):
                        children[i] = draft
                if None not in children:
                    break
            return tuple(
                parent if child is None else child for child, parent in zip(children, parents, strict=True)
            )

        return attempt

    def _program(self, individual) -> tuple[list[int], list[float]]:
        """Return the tokens and constants of a tree, whose numeric terminals are constants."""
        tokens: list[int] = []
        values: list[float] = []
        for node in individual:
            is_number = node.arity == 0 and isinstance(node.value, Real)
            token = self._constant_token if is_number else self._token.get(node.name, -1)
            if token < 0:
                raise ValueError(
                    f"The node {node.name!r} is no token of the library {self._library.name!r}; "
                    "let the operators use the nodes of the primitive set."
                )
            if token == self._constant_token:
                values.append(float(node.value) if is_number else NEW_CONSTANT)
            tokens.append(token)
        return tokens, values

    def _is_valid(self, individual) -> bool:
        if not 0 < len(individual) <= min(self._width, self._grammar.max_length):
            return False
        population = self.to_population([individual])
        return bool(are_valid(population.tokens, population.lengths, self._grammar)[0])


def primitive_set(library: Library, grammar: Grammar) -> gp.PrimitiveSet:
    """Return DEAP's primitive set of a library: its operators, and the leaves that `grammar` allows.

    Primitives have the names of the tokens, and functions of arrays, which evolution does not call.
    """
    from deap import gp

    variables = [token.name for i, token in enumerate(library.tokens) if grammar.is_variable[i]]
    pset = gp.PrimitiveSet(library.name, len(variables), prefix="ARG")
    pset.renameArguments(**{f"ARG{i}": name for i, name in enumerate(variables)})
    for token in library.tokens:
        if token.arity > 0:
            pset.addPrimitive(_array_function(token.name, library), token.arity, name=token.name)
    if grammar.is_constant.any() and grammar.max_constants > 0:
        pset.addTerminal(NEW_CONSTANT, name="const")
    return pset


def _array_function(name: str, library: Library) -> Callable[..., Any]:
    def function(*operands):
        variables = dict(zip("ab", operands))
        tree = ("div", 1, "a") if name == "inv" else (name, *variables)
        return evaluate_tree(tree, variables, functions=library.functions)

    return function


def _differ(population: Population, other: Population) -> np.ndarray:
    return (
        (population.lengths != other.lengths)
        | (population.tokens != other.tokens).any(axis=1)
        | (population.constants != other.constants).any(axis=1)
    )


@contextmanager
def _seeded(state: np.ndarray) -> Iterator[None]:
    """Seed Python's global generator from `state`, and restore its own state afterwards."""
    with _DRAWING:  # other evolutions draw from the same generator
        before = random.getstate()
        random.seed(int(next_uint64(state)))
        try:
            yield
        finally:
            random.setstate(before)
