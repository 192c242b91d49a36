"""Algorithm 1 of the paper: train encoder and decoder on equations of the prior."""

from __future__ import annotations

import json
import math
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dgsr import objectives
from dgsr.checkpoints import load_generator, refuse_user_operators, save_generator, write_atomically
from dgsr.exclusion import benchmark_exclusions
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library, get_library
from dgsr.generator.config import CONFIGS, GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.population import DataSet
from dgsr.prior import DrawnDataSets, Exclusions, Prior
from dgsr.validation import draw_validation_set, fitted_nmse, measure

OBJECTIVES = ("cross-entropy", "vpg", "risk-seeking")

_TRAINING = "training.safetensors"
_MICRO_BATCH = 64
_CURVE_POINTS = 20


@dataclass(frozen=True)
class PretrainingConfig:
    """How a generator is trained.

    Parameters
    ----------
    objective : {"cross-entropy", "vpg", "risk-seeking"}
        Likelihood of the true program, or the end-to-end reward of sampled programs by vanilla
        (the paper's) or risk-seeking policy gradient.
    steps : int
        Mini-batches.
    n_datasets : int
        Data sets in a mini-batch: t of the paper.
    n_programs : int
        Programs sampled for each by the policy gradients: k of the paper.
    min_samples, max_samples : int
        Rows of a data set; log-uniform, the same for a mini-batch.
    learning_rate : float
        Of Adam; rises over `warmup` steps, then falls with a cosine to a hundredth.
    warmup : int
    weight_decay, gradient_clip : float
    baseline_alpha : float
        Of the EWMA baseline of ``vpg``.
    epsilon : float
        Share of the programs ``risk-seeking`` trains on.
    entropy_weight, entropy_decay : float
        Of the hierarchical entropy term of the policy gradients.

    Raises
    ------
    ValueError
        If `objective` is unknown, or a count is below 1.
    """

    objective: str = "cross-entropy"
    steps: int = 20_000
    n_datasets: int = 128
    n_programs: int = 500
    min_samples: int = 8
    max_samples: int = 60
    learning_rate: float = 1e-3
    warmup: int = 200
    weight_decay: float = 0.01
    gradient_clip: float = 1.0
    baseline_alpha: float = 0.5
    epsilon: float = 0.02
    entropy_weight: float = 0.003
    entropy_decay: float = 1.0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective={self.objective!r} is unknown; choose from {', '.join(OBJECTIVES)}.")
        for name in ("steps", "n_datasets", "n_programs", "min_samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1.")
        if self.max_samples < self.min_samples:
            raise ValueError(
                f"max_samples={self.max_samples} must be at least min_samples={self.min_samples}."
            )


#: The settings of the paper, appendix "Dataset Generation and Training", and those we ship with.
PRETRAINING_CONFIGS = {
    "paper": PretrainingConfig(
        objective="vpg",
        steps=2_000,
        n_datasets=5,
        n_programs=500,
        min_samples=20,
        max_samples=20,
        warmup=1,
        weight_decay=0.0,
    ),
    "base": PretrainingConfig(),
}


@dataclass(frozen=True)
class Progress:
    """What `pretrain` tells its callback after a step."""

    step: int
    steps: int
    seconds: float
    loss: float
    validation: dict[str, float] | None


class Trainer:
    """A generator, its optimiser and the stream of data sets; every step depends on the seed and
    its number alone, so a resumed run equals an uninterrupted one.

    Parameters
    ----------
    generator : Generator
    prior : Prior
    config : PretrainingConfig
    excluded : Exclusions
        Functions never trained on; see `Prior.draw`.
    seed : int
    """

    def __init__(
        self,
        generator: Generator,
        prior: Prior,
        config: PretrainingConfig,
        excluded: Exclusions,
        seed: int,
    ) -> None:
        self.generator = generator
        self.prior = prior
        self.config = config
        self.excluded = excluded
        self.seed = seed
        self.step = 0
        self.baseline = objectives.Baseline(config.baseline_alpha)
        self.optimizer = torch.optim.AdamW(
            generator.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def run_step(self) -> float:
        """Train on one mini-batch; return its loss."""
        state = new_state(self.seed, self.step)
        generator, config = self.generator, self.config
        rng = np.random.default_rng((self.seed, self.step))
        n_samples = round(
            math.exp(rng.uniform(math.log(config.min_samples), math.log(config.max_samples + 1)))
        )
        # Any number of variables, the more the more often.
        counts = np.arange(1, generator.library.n_variables + 1)
        n_variables = int(rng.choice(counts, p=counts / counts.sum()))
        drawn = self.prior.draw(
            config.n_datasets,
            n_samples,
            n_variables,
            generator.library,
            generator.constraints,
            state,
            self.excluded,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * self._schedule()
        self.optimizer.zero_grad(set_to_none=True)
        baseline, step = self.baseline.value, self.step
        try:
            if config.objective == "cross-entropy":
                loss = self._cross_entropy(drawn, n_variables)
            else:
                loss = self._policy_gradient(drawn, n_variables, state)
            torch.nn.utils.clip_grad_norm_(generator.parameters(), config.gradient_clip)
            with _ctrl_c_waits():  # half a step would be done again on top of itself
                self.optimizer.step()
                self.step += 1
        except BaseException:  # Ctrl-C included
            if self.step == step:  # the step will be done again
                self.baseline.value = baseline
            raise
        return loss

    def _schedule(self) -> float:
        if self.step < self.config.warmup:
            return (self.step + 1) / self.config.warmup
        done = (self.step - self.config.warmup) / max(1, self.config.steps - self.config.warmup)
        return 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))

    def _tensors(self, drawn: DrawnDataSets, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        device = self.generator.device
        return torch.from_numpy(drawn.X[rows]).to(device), torch.from_numpy(drawn.y[rows]).to(device)

    def _cross_entropy(self, drawn: DrawnDataSets, n_variables: int) -> float:
        """Accumulate the gradient over programs of similar length, so that little is padding."""
        generator = self.generator
        grammar = generator.grammar(n_variables)
        programs = drawn.programs
        order = np.argsort(programs.lengths, kind="stable")
        total = 0.0
        for start in range(0, len(order), _MICRO_BATCH):
            rows = order[start : start + _MICRO_BATCH]
            latents = generator.encode(*self._tensors(drawn, rows), n_variables)
            log_probs = generator.log_probs(latents, programs.tokens[rows], programs.lengths[rows], grammar)
            loss = objectives.priority_queue_training(log_probs.programs) * (len(rows) / len(order))
            loss.backward()
            total += float(loss.detach())
        return total

    def _policy_gradient(self, drawn: DrawnDataSets, n_variables: int, state: np.ndarray) -> float:
        generator, config = self.generator, self.config
        grammar = generator.grammar(n_variables)
        rows = np.arange(config.n_datasets)
        latents = generator.encode(*self._tensors(drawn, rows), n_variables)
        with torch.no_grad():
            samples = generator.sample_latents(latents.detach(), config.n_programs, grammar, state)
        rewards = self.rewards(samples.tokens, samples.lengths, drawn)
        log_probs = generator.log_probs(latents, samples.tokens, samples.lengths, grammar)
        given = torch.from_numpy(rewards).to(log_probs.programs)
        if config.objective == "vpg":
            loss = objectives.vanilla_policy_gradient(log_probs.programs, given, self.baseline.update(given))
        else:
            loss = objectives.risk_seeking_policy_gradient(log_probs.programs, given, config.epsilon)
        entropy = objectives.hierarchical_entropy(log_probs.entropies, config.entropy_decay)
        (loss - config.entropy_weight * entropy).backward()
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
        write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata=text))

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
        if metadata["settings"] != json.loads(json.dumps(self.settings())):
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


def pretrain(
    library: str | Library,
    n_variables: int,
    out: str | Path,
    *,
    config: str | GeneratorConfig = "base",
    training: str | PretrainingConfig = "base",
    prior: Prior | None = None,
    constraints: Constraints | None = None,
    start_from: str | Path | None = None,
    max_time: float | None = None,
    device: str = "cpu",
    random_state: int = 0,
    resume: bool = True,
    n_validation: int = 128,
    save_every: float = 60.0,
    callback: Callable[[Progress], None] | None = None,
    **changes: Any,
) -> Generator:
    """Train a conditional generator and write it, with its card, to a folder.

    Parameters
    ----------
    library : str or Library
        Name of a preset, or a library of the user's.
    n_variables : int
        Most variables a data set may have.
    out : str or Path
        Folder for ``weights.safetensors`` and ``card.json``; and for
        ``training.safetensors``, from which the same call goes on after any interruption.
    config : str or GeneratorConfig
        Sizes of the network, or the name of a preset: ``"base"``, ``"paper"``. By name, the target is
        standardised where the library has constants.
    training : str or PretrainingConfig
        How to train, or the name of a preset: ``"base"``, ``"paper"``.
    prior : Prior, optional
        Distribution of equations and inputs; `Prior.default_for` the library by default, which
        without constants is the paper's.
    constraints : Constraints, optional
    start_from : str or Path, optional
        Name or folder of a generator whose weights to begin with, of the same library and sizes
        (`config` is then taken from it).
    max_time : float, optional
        Seconds after which to stop early; call again to go on.
    device : str
    random_state : int
    resume : bool
        Whether to go on from ``training.safetensors`` if there is one. The settings must be the
        same, but for the number of steps.
    n_validation : int
        Held-out equations the card's figures are measured on.
    save_every : float
        Seconds between writes of the training state.
    callback : callable, optional
        Called with a `Progress` after every step.
    **changes
        Fields of `PretrainingConfig` to change, such as ``steps=5_000``.

    Returns
    -------
    Generator

    Raises
    ------
    ValueError
        If a setting is unknown, or `out` holds a run with other settings.

    References
    ----------
    Holt, Qian, van der Schaar, ICLR 2023, algorithm 1.
    """
    if isinstance(library, str):
        library = get_library(library, n_variables)
    refuse_user_operators(library)
    if isinstance(config, str):
        config = CONFIGS[config]
        if library.has_constants:
            config = replace(config, target="standardised", input_encoding="moments")
    training = replace(PRETRAINING_CONFIGS[training] if isinstance(training, str) else training, **changes)
    prior = prior or Prior.default_for(library, n_variables)
    if start_from is not None:
        generator = load_generator(start_from, device)
        if generator.library != library.with_variables(n_variables):
            raise ValueError(
                f"start_from={str(start_from)!r} has another library; start from one of {library.name}."
            )
    else:
        constraints = constraints or Constraints(max_length=config.max_length)
        generator = Generator.untrained(
            library.with_variables(n_variables), config, constraints, random_state
        )
    generator = generator.to(device).train()

    known = benchmark_exclusions(generator.library, generator.constraints)
    validation = draw_validation_set(generator, prior, known, n_validation, random_state)
    trainer = Trainer(generator, prior, training, validation.excluded(known), random_state)

    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    curves: list[dict[str, float]] = []
    earlier_seconds = 0.0
    if resume and (out / _TRAINING).is_file():
        curves, earlier_seconds = trainer.load(out / _TRAINING)
    started = saved = time.perf_counter()
    losses: list[float] = []

    def seconds() -> float:
        return earlier_seconds + time.perf_counter() - started

    try:
        while trainer.step < training.steps and (max_time is None or seconds() - earlier_seconds < max_time):
            losses.append(trainer.run_step())
            loss, figures = losses[-1], None
            if trainer.step % max(1, training.steps // _CURVE_POINTS) == 0 or trainer.step == training.steps:
                figures = measure(generator, validation, n_programs=100, n_datasets=32)
                mean_loss = float(np.mean(losses))
                curves.append({"step": trainer.step, "seconds": seconds(), "loss": mean_loss, **figures})
                losses.clear()
            if time.perf_counter() - saved > save_every:
                trainer.save(out / _TRAINING, curves, seconds())
                saved = time.perf_counter()
            if callback is not None:
                callback(Progress(trainer.step, training.steps, seconds(), loss, figures))
    finally:  # also after Ctrl-C, or when the callback raises
        trainer.save(out / _TRAINING, curves, seconds())
    card = {
        "name": out.name,
        "library": {
            "name": library.name,
            "operators": list(library.operators),
            "has_constants": library.has_constants,
            "n_variables": n_variables,
        },
        "n_parameters": generator.n_parameters(),
        "config": asdict(generator.config),
        "constraints": asdict(generator.constraints),
        "prior": asdict(prior),
        "training": asdict(training)
        | {"seed": random_state, "start_from": start_from and Path(start_from).name},
        "steps_done": trainer.step,
        "equations_seen": trainer.step * training.n_datasets,
        "seconds": round(seconds(), 1),
        "validation": measure(generator.eval(), validation, n_programs=1000, n_datasets=n_validation),
        "curves": curves,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    }
    save_generator(generator, out, card)
    return generator
