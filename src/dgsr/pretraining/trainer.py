"""The steps of algorithm 1 of the paper, each of which takes one mini-batch of data sets."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np
import torch

from dgsr.data.dataset import DataSet
from dgsr.data.population import rewards_of
from dgsr.generator import objectives
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.pretraining import distributed
from dgsr.pretraining.conditioning_gap import fitted_nmse
from dgsr.pretraining.config import PretrainingConfig
from dgsr.pretraining.decontamination import Decontamination
from dgsr.pretraining.guide import guide_nats
from dgsr.pretraining.prior import DrawnDataSets, Prior
from dgsr.pretraining.stream import Batch, Stream

# Programs in one forward and backward pass on a processor.
_MICRO_BATCH = 64


class Trainer:
    """A generator, its optimiser and its stream of data sets.

    The data of a step depend only on the seed and its number, so that a resumed training equals one that was
    not interrupted. In a process group each process trains on some of the groups of a mini-batch.

    Parameters
    ----------
    generator : Generator
    prior : Prior
    config : PretrainingConfig
    excluded : Decontamination
        Functions that must not be trained on.
    seed : int
    n_workers : int
        Processes that draw data sets in advance; with 0 this process draws them.
    n_variables : int, optional
        Most columns of a table that an equation may have; by default all variables of the generator's
        library.

    Raises
    ------
    ValueError
        If several processes would train by a policy gradient, whose baseline depends on earlier groups.
    """

    def __init__(
        self,
        generator: Generator,
        prior: Prior,
        config: PretrainingConfig,
        excluded: Decontamination,
        seed: int,
        n_workers: int = 0,
        n_variables: int | None = None,
    ) -> None:
        if distributed.n_processes() > 1 and config.objective != "cross-entropy":
            raise ValueError(
                f"objective={config.objective!r} trains in one process, since its baseline follows from one "
                "group to the next; use one, or the objective 'cross-entropy'."
            )
        self.generator = generator
        self.prior = prior
        self.config = config
        self.seed = seed
        self.n_workers = n_workers
        library, constraints = generator.library, generator.constraints
        self.stream = Stream(library, constraints, prior, config, excluded, seed, n_variables or 0)
        self.step = 0
        self.seconds_waited = 0.0
        self._batches: Iterator[Batch] | None = None
        self.baseline = objectives.Baseline(config.baseline_alpha)
        self.optimizer = torch.optim.AdamW(
            generator.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def run_step(self) -> float:
        """Train on one mini-batch and return its loss: lines 3 to 12 of algorithm 1."""
        generator, config = self.generator, self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * self._schedule()
        self.optimizer.zero_grad(set_to_none=True)
        baseline, step = self.baseline.value, self.step
        try:
            loss = 0.0  # line 3
            for number in self._own_groups(step):  # line 4, a group of data sets at a time
                batch = self._next_batch()  # lines 5 to 7
                if config.objective == "cross-entropy":
                    loss += self._cross_entropy(batch)
                else:  # lines 8 to 10; programs are sampled with another seed than the data
                    loss += self._policy_gradient(batch, new_state(self.seed + 1, number))
            loss = distributed.add_up(loss, generator.parameters()) / config.n_groups
            torch.nn.utils.clip_grad_norm_(generator.parameters(), config.gradient_clip)
            with _ctrl_c_waits():  # an incomplete step could not be repeated
                self.optimizer.step()  # line 12
                self.step += 1
        except BaseException:  # Ctrl-C included
            self._batches = None
            if self.step == step:  # the step will be repeated
                self.baseline.value = baseline
            raise
        return loss

    def _own_groups(self, step: int) -> range:
        """Return the numbers of those groups of a step on which this process trains."""
        n = self.config.n_groups
        return range(step * n + distributed.rank(), (step + 1) * n, distributed.n_processes())

    def _next_batch(self) -> Batch:
        """Return the next batch of this process, and add the seconds of waiting for it to the total."""
        start = time.perf_counter()
        if self._batches is None:
            steps = range(self.step, max(self.config.steps, self.step + 1))
            numbers = [number for step in steps for number in self._own_groups(step)]
            self._batches = self.stream.batches(numbers, self.n_workers)
        batch = next(self._batches, None)
        if batch is None:  # training continues beyond the steps of its settings
            self._batches = None
            return self._next_batch()
        self.seconds_waited += time.perf_counter() - start
        return batch

    def _schedule(self) -> float:
        """Return the learning rate of the step relative to its peak: a linear warm-up, then a cosine."""
        if self.step < self.config.warmup:
            return (self.step + 1) / self.config.warmup
        done = (self.step - self.config.warmup) / max(1, self.config.steps - self.config.warmup)
        return 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))

    def _cross_entropy(self, batch: Batch) -> float:
        """Add the gradient of minus the log-likelihood of programs, and of their pairs under the guide.

        Programs of similar length are processed together.
        """
        generator = self.generator
        n_variables, drawn, blind = batch
        grammar = generator.grammar(n_variables)
        programs = drawn.programs
        order = np.argsort(programs.lengths, kind="stable")
        total = 0.0
        at_once = _MICRO_BATCH if generator.device.type == "cpu" else len(order)
        for start in range(0, len(order), at_once):
            rows = order[start : start + at_once]
            encoding = generator.encode(drawn.X[rows], drawn.y[rows], n_variables)
            if blind:
                encoding = encoding.blurred()
            log_probs = generator.log_probs(encoding, programs.tokens[rows], programs.lengths[rows], grammar)
            loss = objectives.priority_queue_training(log_probs.programs)
            if generator.guide is not None:
                loss = loss + guide_nats(generator, encoding, programs[rows], n_variables).mean()
            loss = loss * (len(rows) / len(order))
            (loss / self.config.n_groups).backward()
            total += float(loss.detach())
        return total

    def _policy_gradient(self, batch: Batch, state: np.ndarray) -> float:
        """Add the gradient of minus the expected reward of sampled programs: lines 8 to 10 of algorithm 1."""
        generator, config, drawn = self.generator, self.config, batch.drawn
        grammar = generator.grammar(batch.n_variables)
        encoding = generator.encode(drawn.X, drawn.y, batch.n_variables)
        with torch.no_grad():
            samples = generator.sample_encoded(encoding.detached(), config.n_programs, grammar, state)
        rewards = self.rewards(samples.tokens, samples.lengths, drawn)
        log_probs = generator.log_probs(encoding, samples.tokens, samples.lengths, grammar)
        given = torch.from_numpy(rewards).to(log_probs.programs)
        if config.objective == "vpg":
            loss = objectives.vanilla_policy_gradient(log_probs.programs, given, self.baseline.update(given))
        else:
            loss = objectives.risk_seeking_policy_gradient(log_probs.programs, given, config.epsilon)
        entropy = objectives.hierarchical_entropy(log_probs.entropies, config.entropy_decay)
        ((loss - config.entropy_weight * entropy) / config.n_groups).backward()
        return -float(given.mean())

    def rewards(self, tokens: np.ndarray, lengths: np.ndarray, drawn: DrawnDataSets) -> np.ndarray:
        """Return the reward of each program on its data set, shape (D, K), which is line 9."""
        programs = self.generator.population(tokens, lengths)
        of_datasets = np.arange(len(programs)).reshape(len(drawn.y), -1)
        nmse = [
            fitted_nmse(programs[own], DataSet.from_arrays(X, y))
            for own, X, y in zip(of_datasets, drawn.X, drawn.y, strict=True)
        ]
        return rewards_of(np.stack(nmse))


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block; it interrupts only the main thread."""
    is_foreign = signal.getsignal(signal.SIGINT) is None  # whether the handler was not installed by Python
    if is_foreign or threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda *received: waiting.append(received))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting and callable(before):
            before(*waiting[0])
