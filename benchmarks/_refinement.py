"""What refinement does to the decoder on equations that a search misses, and what the refined one finds.

A search by evolution and the shipped generator, without refinement, is made for every equation of the drawn
sets. The equation is missed if no formula of the front is below the bound of these sets. Of a missed one, the
best ten programs before the last restart are the queue on which the pre-trained decoder is then trained: by a
step to each of some divergences, by four such steps, and by thirty steps of Adam as in the paper. A record
has the change of the equation's log-likelihood, and the divergence from the pre-trained decoder, in nats.

Then two new searches, one of them refined, count how many changes of the archive come from samples of the
decoder after the first step of refinement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.benchmarking.recording import nmse
from dgsr.benchmarking.recovery import is_found
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.search import Search, SearchConfig
from dgsr.search.conditioned import ConditionedGenerator
from dgsr.search.evolution import EvolutionConfig

#: The sets of equations, with the noise of each, and how many equations are drawn.
SETS = (("koza", 0.0, 60), ("laws", 0.0, 120), ("laws", 0.01, 60), ("wide", 0.01, 40))
DRAW_SEED = 61001
N_EVALUATIONS = 150_000
#: How many steps of refinement are due in the searches that count changes of the archive.
N_STEPS = 4
# Samples of the pre-trained decoder by which the divergence is measured.
_N_MEASURED = 400
#: How the decoder is trained: settings of the search, and steps.
WAYS: dict[str, tuple[dict[str, Any], int]] = {
    **{f"to {d} nats": ({"refine": "auto", "divergence": d}, 1) for d in (0.02, 0.2, 1.0)},
    "to 0.2 nats, four steps": ({"refine": "auto", "divergence": 0.2}, 4),
    "Adam, thirty steps": ({"refine": True}, 30),
}


@dataclass(frozen=True, eq=False)
class Refining:
    """The measurements of one equation, for `record_all`."""

    problem: DrawnProblem
    noise: float
    generator: Generator

    def identity(self) -> dict[str, Any]:
        problem = self.problem
        return {"set": problem.set, "draw_seed": problem.seed, "problem": problem.name, "noise": self.noise}

    def record(self) -> dict[str, Any]:
        """Search, and where the equation is missed train on the queue and search again."""
        search, queue = self._search(refine=False)
        if queue is None or self._is_found(search):
            return {**self.identity(), "missed": False}
        changes = {name: self._trained(search, queue, *way) for name, way in WAYS.items()}
        entries = {refine: self._entries(refine) for refine in ("auto", False)}
        return {
            **self.identity(),
            "missed": True,
            "changes": changes,
            "entries": {"refined": entries["auto"], "pre-trained": entries[False]},
        }

    def _new_search(self, **settings: Any) -> Search:
        data = self.problem.sample(self.noise)
        settings = {"max_evaluations": N_EVALUATIONS, **settings}
        config = SearchConfig(look_up=False, evolution=EvolutionConfig(), **settings)
        library = self.problem.truth.library
        constraints = Constraints(max_length=self.problem.max_length, linear_scaling=library.has_constants)
        rows = DataSet.from_arrays(data.X_train, data.y_train)
        return Search(rows, library, constraints, config, self.generator)

    def _search(self, **settings: Any) -> tuple[Search, Population | None]:
        """Return a search that has ended, and its best ten programs before the last restart."""
        search, queue = self._new_search(**settings), None
        while search.stop_reason() is None:
            n = search.restarts.n
            search.tell(search.ask())
            if search.restarts.n > n:
                queue = search.evolved.best(search.config.queue_size).programs
        return search, queue

    def _is_found(self, search: Search) -> bool:
        data = self.problem.sample(self.noise)
        values = search.archive.population().predict(data.X_test)
        return any(is_found(nmse(data.y_test, each), self.noise) for each in values)

    def _trained(self, search: Search, queue: Population, settings: dict[str, Any], n: int) -> list[float]:
        """Return the change of the truth's log-likelihood, and the divergence, after training."""
        config = replace(search.config, **settings)
        parts = search.data, search.library, search.grammar
        conditioned = ConditionedGenerator(self.generator, *parts, config, 0)
        samples = self.generator.sample_encoded(
            conditioned.encoding, _N_MEASURED, search.grammar, new_state(1)
        )
        truth = Population.from_expressions([self.problem.truth]).of_width(*search.widths)

        def measured() -> tuple[float, np.ndarray]:
            with torch.no_grad():
                of_truth, of_samples = (
                    conditioned.generator.log_probs(conditioned.encoding, *programs, search.grammar).programs
                    for programs in ((truth.tokens, truth.lengths), (samples.tokens, samples.lengths))
                )
            return float(of_truth), of_samples[0].double().numpy()

        before = measured()
        for _ in range(n):
            conditioned.refine(queue, queue, np.zeros(len(queue)), 0, lambda: False)
        after = measured()
        return [after[0] - before[0], float((before[1] - after[1]).mean())]

    def _entries(self, refine: bool | str) -> list[int]:
        """Return how many changes of the archive samples made after the first step, and how many all made."""
        search, n_sampled, n_all = self._new_search(refine=refine, max_evaluations=10**9), 0, 0
        sample, samples = search.conditioned.sample, []
        search.conditioned.sample = lambda *arguments: samples.append(sample(*arguments)) or samples[-1]
        every = search.evaluation.refined_every
        while search.stop_reason() is None and search.n_evaluations < N_STEPS * every:
            before = search.archive.nmse.copy()
            asked = search.ask()
            is_counted = search.n_evaluations > every
            if is_counted and samples:
                search.evaluate(samples[-1], len(samples[-1]))
                n_sampled += int((search.archive.nmse < before).sum())
            samples.clear()
            search.tell(asked)
            n_all += is_counted * int((search.archive.nmse < before).sum())
        return [n_sampled, n_all]


def runs(generators: dict[str, Generator]) -> Iterator[Refining]:
    """Yield the measurements of all sets, given the generator of each library by its name."""
    for name, noise, n in SETS:
        for problem in draw_problems(name, n, DRAW_SEED):
            generator = generators[problem.truth.library.name].with_variables(problem.n_columns)
            yield Refining(problem, noise, generator)
