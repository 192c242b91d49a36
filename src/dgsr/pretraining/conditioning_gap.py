"""The conditioning gap: how much a generator uses its data, measured on held-out equations of the prior.

The gap is the difference between results with the right data set and with that of another equation, the
wrong-data control, in the reward of the samples and in the log-likelihood of the true program. A generator
that ignores its data has a gap of zero, however good its samples are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
import torch

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.pretraining.decontamination import Decontamination, comparable, leave_out
from dgsr.pretraining.guide import guide_nats
from dgsr.pretraining.prior import DrawnDataSets, Prior
from dgsr.reporting.progress import begin_phase

#: Rows that the encoder reads.
N_SEEN = 30
#: NMSE on all rows below which a sampled program counts as the true function.
EXACT = 1e-12


class ValidationSet(NamedTuple):
    """Held-out equations, each with a data set, all over the same number of variables."""

    drawn: DrawnDataSets
    n_variables: int
    linear_scaling: bool = False

    def added_to(self, others: Decontamination) -> Decontamination:
        """Return `others` with the equations of this set added, with their present constants only.

        Training compares equations over the first columns, before these are put in random order. So for each
        equation there is a row for every order in which the first columns can replace its own.
        """
        programs, first = self.drawn.programs, self.drawn.programs.library.first_variable
        by_columns: dict[tuple[int, ...], list[int]] = {}
        for i, tokens in enumerate(programs.tokens.tolist()):
            used = tuple(sorted({token - first for token in tokens if token >= first}))
            by_columns.setdefault(used, []).append(i)
        rows = [others.values]
        for used, numbers in by_columns.items():
            points = others.points.copy()
            for order in permutations(range(len(used))):
                points[list(used)] = others.points[list(order)]
                rows.append(comparable(programs[np.array(numbers)].predict(points.T), self.linear_scaling))
        return leave_out(others.points, np.concatenate(rows), others.skeletons)


def fitted_nmse(population: Population, data: DataSet) -> np.ndarray:
    """Return the NMSE of every program; constants are fitted first, in a copy."""
    if not population.library.has_constants:
        return population.nmse(data)
    _, first, inverse = np.unique(population.tokens, axis=0, return_index=True, return_inverse=True)
    distinct = population[first]  # a copy
    return fit_constants(distinct, data, second_start=True).nmse[inverse.ravel()]


def draw_validation_set(
    generator: Generator,
    prior: Prior,
    excluded: Decontamination,
    n: int,
    seed: int,
    n_variables: int | None = None,
) -> ValidationSet:
    """Draw `n` equations with 100 rows without noise, which must be excluded from training.

    They have up to `n_variables` variables, by default as many as the generator's library.
    """
    n_variables = n_variables or generator.library.n_variables
    state = new_state(seed, 2**32 - 1)
    prior = replace(prior, noise=None)
    arguments = n, 100, n_variables, generator.library, generator.constraints, state, excluded
    drawn = prior.draw(*arguments, in_any_order=True)
    return ValidationSet(drawn, n_variables, generator.grammar(n_variables).linear_scaling)


@torch.inference_mode()
def measure(
    generator: Generator, validation: ValidationSet, n_programs: int, n_datasets: int
) -> dict[str, float]:
    """Measure the conditioning gap and the hit rates, with fitted constants of the samples.

    `n_programs` are sampled for each of the first `n_datasets` equations of the validation set.

    Returns
    -------
    dict
        ``log_likelihood_right``, ``_wrong``, ``_none``: mean log-likelihood in nats of the true program given
        its own data, the data of the next equation, and the mean encoding of all data sets;
        ``guide_nats_right``, ``_wrong``, ``_none``: minus the log-likelihood in nats of its parent-child
        pairs under the guide, for a generator with a guide. ``reward_right``, ``reward_wrong`` and
        ``top_reward_right``, ``top_reward_wrong``: mean reward of all and of the best 2% of (at most) 100
        samples for these data. ``valid``: share of the samples whose values are finite. ``hit_1``,
        ``hit_10``, ...: share of the equations whose function is among as many first samples;
        ``hit_100_wrong``: the same with the wrong data.
    """
    drawn, d = validation.drawn, validation.n_variables
    n = min(n_datasets, len(drawn.y))
    grammar = generator.grammar(d)
    encoding = generator.encode(drawn.X[:n, :N_SEEN], drawn.y[:n, :N_SEEN], d)
    programs = drawn.programs[np.arange(n)]
    others = encoding.of(np.roll(np.arange(n), -1))

    figures: dict[str, float] = {"n_equations": n}
    for name, given in (("right", encoding), ("wrong", others), ("none", encoding.blurred())):
        log_probs = generator.log_probs(given, programs.tokens, programs.lengths, grammar).programs
        figures[f"log_likelihood_{name}"] = float(log_probs.mean())
        if generator.guide is not None:
            figures[f"guide_nats_{name}"] = float(guide_nats(generator, given, programs, d).mean())

    state = new_state(0)
    exact = 100.0 * EXACT if generator.library.has_constants else EXACT
    # The first hundred samples suffice for the control, because its share of hits is small.
    counts = {"right": n_programs, "wrong": min(n_programs, 100)}
    rewards = {name: np.empty((n, count)) for name, count in counts.items()}
    first_hit = {name: np.full(n, np.inf) for name in counts}
    for j in range(n):
        begin_phase(f"measuring on equation {j + 1} of {n}")
        data = DataSet.from_arrays(drawn.X[j], drawn.y[j])
        for name, given in (("right", encoding), ("wrong", others)):
            samples = generator.sample_encoded(given.of(np.array([j])), counts[name], grammar, state)
            nmse = fitted_nmse(generator.population(samples.tokens, samples.lengths), data)
            rewards[name][j] = rewards_of(nmse)
            hits = np.flatnonzero(nmse < exact)
            if len(hits):
                first_hit[name][j] = hits[0]
    for name, values in rewards.items():
        compared = np.sort(values[:, : counts["wrong"]], axis=1)
        top = max(1, round(0.02 * compared.shape[1]))
        figures[f"reward_{name}"] = float(compared.mean())
        figures[f"top_reward_{name}"] = float(compared[:, -top:].mean())
    figures["valid"] = float((rewards["right"] > 0.0).mean())
    for count in (1, 10, 100, 1000):
        if count <= n_programs:
            figures[f"hit_{count}"] = float((first_hit["right"] < count).mean())
    figures["hit_100_wrong"] = float((first_hit["wrong"] < 100).mean())
    return figures
