"""One generator, its optimiser and its stream of data sets: the steps of algorithm 1."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from dgsr.generator import objectives
from dgsr.generator.config import INPUT_LAYOUT
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.population import DataSet
from dgsr.pretraining import distributed
from dgsr.pretraining.conditioning_gap import fitted_nmse
from dgsr.pretraining.config import PretrainingConfig
from dgsr.pretraining.prior import DrawnDataSets, Exclusions, Prior
from dgsr.pretraining.stream import Batch, Stream
from dgsr.writing import write_atomically

_MICRO_BATCH = 64


class Trainer:
    """A generator, its optimiser and the stream of data sets; every step depends on the seed and
    its number alone, so a resumed run equals an uninterrupted one.

    In a process group each process trains on its share of the groups of a mini-batch.

    Parameters
    ----------
    generator : Generator
    prior : Prior
    config : PretrainingConfig
    excluded : Exclusions
        Functions never trained on; see `Prior.draw`.
    seed : int
    n_workers : int
        Processes that draw data sets ahead of the training; 0 draws them in between.
    """

    def __init__(
        self,
        generator: Generator,
        prior: Prior,
        config: PretrainingConfig,
        excluded: Exclusions,
        seed: int,
        n_workers: int = 0,
    ) -> None:
        self.generator = generator
        self.prior = prior
        self.config = config
        self.seed = seed
        self.n_workers = n_workers
        self.stream = Stream(
            generator.library,
            generator.constraints,
            prior,
            config,
            excluded,
            seed,
            generator.config.remainders,
        )
        self.step = 0
        self.seconds_waited = 0.0
        self._batches: Iterator[Batch] | None = None
        self.baseline = objectives.Baseline(config.baseline_alpha)
        self.optimizer = torch.optim.AdamW(
            generator.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def run_step(self) -> float:
        """Train on one mini-batch; return its loss."""
        generator, config = self.generator, self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * self._schedule()
        self.optimizer.zero_grad(set_to_none=True)
        baseline, step = self.baseline.value, self.step
        try:
            loss = 0.0
            for number in self._own_groups(step):
                # Another seed than the stream's, whose numbers the data are drawn with.
                loss += self._train_on(self._next_batch(), new_state(self.seed + 1, number))
            loss = distributed.add_up(loss, generator.parameters()) / config.n_groups
            torch.nn.utils.clip_grad_norm_(generator.parameters(), config.gradient_clip)
            with _ctrl_c_waits():  # half a step would be done again on top of itself
                self.optimizer.step()
                self.step += 1
        except BaseException:  # Ctrl-C included
            self._batches = None
            if self.step == step:  # the step will be done again
                self.baseline.value = baseline
            raise
        return loss

    def _own_groups(self, step: int) -> range:
        """Numbers of the groups of a step that this process trains on."""
        n = self.config.n_groups
        return range(step * n + distributed.rank(), (step + 1) * n, distributed.n_processes())

    def _next_batch(self) -> Batch:
        start = time.perf_counter()
        if self._batches is None:
            steps = range(self.step, max(self.config.steps, self.step + 1))
            numbers = [number for step in steps for number in self._own_groups(step)]
            self._batches = self.stream.batches(numbers, self.n_workers)
        batch = next(self._batches, None)
        if batch is None:  # more steps than the settings say
            self._batches = None
            return self._next_batch()
        self.seconds_waited += time.perf_counter() - start
        return batch

    def _train_on(self, batch: Batch, state: np.ndarray) -> float:
        """Add the gradient of a group to that of its mini-batch; return its loss."""
        if self.config.objective == "cross-entropy":
            return self._cross_entropy(batch)
        return self._policy_gradient(batch, state)

    def _schedule(self) -> float:
        if self.step < self.config.warmup:
            return (self.step + 1) / self.config.warmup
        done = (self.step - self.config.warmup) / max(1, self.config.steps - self.config.warmup)
        return 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))

    def _cross_entropy(self, batch: Batch) -> float:
        """Accumulate the gradient over programs of similar length, so that little is padding."""
        generator = self.generator
        n_variables, drawn, blind, found = batch
        grammar = generator.grammar(n_variables)
        programs = drawn.programs
        order = np.argsort(programs.lengths, kind="stable")
        total = 0.0
        at_once = _MICRO_BATCH if generator.device.type == "cpu" else len(order)
        for start in range(0, len(order), at_once):
            rows = order[start : start + at_once]
            laws = None if found is None else found[rows]
            encoding = generator.encode(drawn.X[rows], drawn.y[rows], n_variables, laws)
            if blind:
                encoding = encoding.blurred()
            truth = generator.with_joins(encoding, programs.tokens[rows], programs.lengths[rows], grammar)
            log_probs = generator.log_probs(encoding, *truth, grammar)
            loss = objectives.priority_queue_training(log_probs.programs) * (len(rows) / len(order))
            (loss / self.config.n_groups).backward()
            total += float(loss.detach())
        return total

    def _policy_gradient(self, batch: Batch, state: np.ndarray) -> float:
        generator, config, drawn = self.generator, self.config, batch.drawn
        grammar = generator.grammar(batch.n_variables)
        encoding = generator.encode(drawn.X, drawn.y, batch.n_variables, batch.found)
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
        """Reward of each sampled program on the data set it was sampled for: shape (D, K)."""
        n_datasets = len(drawn.y)
        tokens = tokens.reshape(n_datasets, -1, tokens.shape[-1])
        lengths = lengths.reshape(n_datasets, -1)
        nmse = [
            fitted_nmse(
                self.generator.population(tokens[j], lengths[j]), DataSet.from_arrays(drawn.X[j], drawn.y[j])
            )
            for j in range(n_datasets)
        ]
        return 1.0 / (1.0 + np.stack(nmse))

    def save(self, path: Path, curves: list[dict[str, float]], seconds: float) -> None:
        """Write everything `load` needs, in one file and one step."""
        tensors = {f"weights.{name}": t.detach().cpu() for name, t in self.generator.state_dict().items()}
        for i, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{name}": value.cpu() for name, value in moments.items()}
        metadata = {
            "step": self.step,
            "baseline": self.baseline.value,
            "curves": curves,
            "seconds": seconds,
            "settings": self.settings(),
        }
        text = {"training": json.dumps(metadata)}
        write_atomically(path, to_bytes(tensors, metadata=text))

    def load(self, path: Path) -> tuple[list[dict[str, float]], float]:
        """Go back to the state `save` wrote; return the curves and the seconds so far.

        Raises
        ------
        ValueError
            If the file is damaged, or was written by a run with other settings.
        """
        try:
            with safe_open(path, framework="pt") as file:
                metadata = json.loads((file.metadata() or {})["training"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, KeyError, ValueError) as error:
            raise ValueError(
                f"{path} is damaged ({error}); choose another folder, or pass resume=False to begin anew."
            ) from error
        written = {"input_layout": 1} | metadata["settings"]  # as for a generator's file without the field
        if written != json.loads(json.dumps(self.settings())):
            raise ValueError(
                f"{path} belongs to a run with other settings; resume with the same ones, "
                "choose another folder, or pass resume=False."
            )
        self.generator.load_state_dict(
            {name.removeprefix("weights."): t for name, t in tensors.items() if name.startswith("weights.")}
        )
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, i, moment = name.split(".")
                state.setdefault(int(i), {})[moment] = tensor
        self.optimizer.load_state_dict(
            {"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]}
        )
        self.step = metadata["step"]
        self.baseline.value = metadata["baseline"]
        return metadata["curves"], metadata["seconds"]

    def settings(self) -> dict[str, Any]:
        generator = self.generator
        return {
            "library": [
                *generator.library.operators,
                generator.library.has_constants,
                generator.library.n_variables,
            ],
            "config": asdict(generator.config),
            "constraints": asdict(generator.constraints),
            "prior": asdict(self.prior),
            # A run may be made longer or shorter while it goes; the learning rate follows.
            "training": {name: value for name, value in asdict(self.config).items() if name != "steps"},
            "seed": self.seed,
            "input_layout": INPUT_LAYOUT,
        }


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let Ctrl-C interrupt after the block, not within; only the main thread is interrupted at all."""
    unheard = signal.getsignal(signal.SIGINT) is None  # a handler that is not Python's
    if unheard or threading.current_thread() is not threading.main_thread():
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
