"""The new programs of a round: samples of the generator, and random programs drawn by the guide's weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import prior_weights, rows_of_parents
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.search.conditioned import ConditionedGenerator
from dgsr.search.evaluation import Evaluation
from dgsr.search.evolution import Forests, random_population
from dgsr.search.restarts import Restarts

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

#: Share of the guide in the weights of tokens, before the first restart, after the first, and so on in turn.
#: In 40,000 evaluations 81 of 140 equations are found with 0.9 and 69 without a guide, but a wrong guide
#: costs as much as a right one gains, so the share varies.
SHARES = (0.9, 0.6, 0.3)
# Random programs that are drawn for each that is evaluated, where units are given: the most consistent are
# chosen. On nine laws of SRBench 6 were found with five and 4 with one, a difference within chance.
_DRAWN_FOR_ONE = 5


class Proposals:
    """The sources of new programs; without a generator there are random ones alone.

    The number of restarts decides on the shares of samples and of the guide, and `seed` on the rows that the
    encoder reads. The random generator of `state`, 4 uint64, is advanced.
    """

    def __init__(
        self,
        generator: Generator | None,
        grammar: Grammar,
        evaluation: Evaluation,
        restarts: Restarts,
        state: np.ndarray,
        forests: Forests | None,
        seed: int,
    ) -> None:
        self._library, self._config, self._evaluation = evaluation.library, evaluation.config, evaluation
        self._restarts, self._state, self._forests = restarts, state, forests
        self.conditioned: ConditionedGenerator | None = None
        probabilities = None
        if generator is not None:
            self.conditioned = ConditionedGenerator(
                generator, evaluation.data, self._library, grammar, self._config, seed
            )
            probabilities = self.conditioned.guide_probabilities
        self._grammars = guided_grammars(grammar, self._library, probabilities)

    @property
    def grammar(self) -> Grammar:
        """The grammar by whose weights programs are grown and mutated in this round."""
        return self._grammars[self._restarts.n % len(self._grammars)]

    def new(self, n: int, should_stop: Callable[[], bool]) -> list[Population]:
        """Return populations of new programs, samples of the generator first and then random ones.

        There are `n` programs in all, fewer if the search should stop during sampling.
        """
        n_random = int(self._random_share * n)
        sampled = [] if n_random == n else [self.sampled(n - n_random, should_stop)]
        return [*sampled, self._random(n_random)]

    def sampled(self, n: int, should_stop: Callable[[], bool]) -> Population:
        """Return n samples of p_theta(f|D), fewer if the search should stop."""
        assert self.conditioned is not None
        return self.conditioned.sample(n, self._evaluation.n_constants, self._state, should_stop)

    def _random(self, n: int) -> Population:
        """Return n random programs; with units, those of several times as many with the fewest violations."""
        if self._evaluation.constraints.units is None:
            return self._drawn(n)
        many = self._drawn(_DRAWN_FOR_ONE * n)
        violations = self._evaluation.valid.violations(self._evaluation.whole(many))
        return many[np.argsort(violations, kind="stable")[:n]]

    def _drawn(self, n: int) -> Population:
        """Return n random programs, forests where there is a form."""
        if self._forests is not None:
            return self._forests.random(n, self._state)
        return random_population(n, self._library, self.grammar, self._state)

    @property
    def _random_share(self) -> float:
        """Share of the new programs of a round that are random, and not sampled."""
        if self.conditioned is None:
            return 1.0
        share = self._config.random_share
        return self._evaluation.random_shares[self._restarts.n > 0] if share is None else share

    @property
    def has_refinement(self) -> bool:
        """Whether the decoder may be trained on the programs of the search."""
        return self.conditioned is not None and self._config.refine is not False

    @property
    def are_refined(self) -> bool:
        """Whether the decoder is trained in this round, which requires that it wrote some of the programs."""
        conditioned = self.conditioned
        if conditioned is None or self._config.refine is False or self._random_share == 1.0:
            return False
        since = self._evaluation.budget.n_evaluations - conditioned.n_evaluations
        return not conditioned.is_bounded or since >= self._evaluation.refined_every


def guided_grammars(grammar: Grammar, library: Library, probabilities: np.ndarray | None) -> list[Grammar]:
    """Return the grammars by whose weights programs are grown and mutated, one for each of `SHARES`.

    The probabilities are those of `dgsr.generator.generator.Generator.guide_probabilities`, of shape
    (n_operators + 1, n_tokens). Without them all weights have their defaults.
    """
    prior = prior_weights(grammar, library)
    if probabilities is None:
        return [grammar._replace(weight=prior)] * len(SHARES)
    guided, rows = prior.copy(), rows_of_parents(grammar, library)
    # Tokens and parents that the generator does not know have their default weights.
    unknown = np.where(probabilities == 0.0, prior[rows], 0.0)
    left = 1.0 - unknown.sum(axis=1, keepdims=True)
    totals = probabilities.sum(axis=1, keepdims=True)
    guided[rows] = unknown + left * probabilities / np.where(totals > 0.0, totals, 1.0)
    return [grammar._replace(weight=(1.0 - share) * prior + share * guided) for share in SHARES]
