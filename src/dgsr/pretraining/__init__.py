"""Algorithm 1 of the paper: train encoder and decoder on equations of the prior."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library, get_library
from dgsr.generator.checkpoints import CURVES, load_generator, refuse_user_operators, save_generator
from dgsr.generator.config import CONFIGS, GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.pretraining import distributed
from dgsr.pretraining.conditioning_gap import ValidationSet, draw_validation_set, measure
from dgsr.pretraining.config import OBJECTIVES, PRETRAINING_CONFIGS, PretrainingConfig
from dgsr.pretraining.curves import to_svg
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior
from dgsr.pretraining.trainer import Trainer
from dgsr.writing import write_atomically

__all__ = ["OBJECTIVES", "PRETRAINING_CONFIGS", "PretrainingConfig", "Progress", "Trainer", "pretrain"]

_TRAINING = "training.safetensors"
_CURVE_POINTS = 20


@dataclass(frozen=True)
class Progress:
    """What `pretrain` tells its callback after a step."""

    step: int
    steps: int
    seconds: float
    loss: float
    validation: dict[str, float] | None


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
    n_workers: int = 0,
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
        Folder for ``weights.safetensors`` and ``card.json``; for ``curves.svg``, which shows how it goes;
        and for ``training.safetensors``, from which the same call goes on after any interruption.
    config : str or GeneratorConfig
        Sizes of the network, or the name of a preset: ``"base"``, ``"paper"``. By name, where the library
        has constants, the target is standardised and the decoder is not told of remainders.
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
    n_workers : int
        Processes that draw data sets ahead of the training, beside each that trains; 0 draws them in
        between. The result does not depend on it.
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

    Notes
    -----
    Started by torchrun, the processes train one generator together, each on its share of the groups of a
    mini-batch; the first writes the files.

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
            # With scale and offset unknown, next to no remainder is beyond doubt.
            config = replace(config, target="standardised", remainders=False)
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
    known = benchmark_decontamination(generator.library, generator.constraints)
    validation = draw_validation_set(generator, prior, known, n_validation, random_state)
    out = Path(out)
    with distributed.process_group(device):
        trainer = Trainer(generator, prior, training, validation.added_to(known), random_state, n_workers)
        run = _Run(trainer, validation, out, resume)
        run.train(max_time, save_every, callback)
        if distributed.rank() == 0:
            card = {
                "name": out.name,
                "library": {
                    "name": library.name,
                    "operators": list(library.operators),
                    "has_constants": library.has_constants,
                    "n_variables": n_variables,
                },
                "training": asdict(training)
                | {"seed": random_state, "start_from": start_from and Path(start_from).name},
                **run.card(n_validation),
            }
            save_generator(generator, out, card)
    return generator


class _Run:
    """A training and its files, from wherever the last call has left them."""

    def __init__(self, trainer: Trainer, validation: ValidationSet, out: Path, resume: bool) -> None:
        self.trainer = trainer
        self.validation = validation
        self.path = out / _TRAINING
        self.writes = distributed.rank() == 0
        self.curves: list[dict[str, float]] = []
        self.earlier_seconds = 0.0
        out.mkdir(parents=True, exist_ok=True)
        if resume and self.path.is_file():
            self.curves, self.earlier_seconds = trainer.load(self.path)
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.earlier_seconds + time.perf_counter() - self.started

    def save(self) -> None:
        if self.writes:
            self.trainer.save(self.path, self.curves, self.seconds)

    def train(
        self, max_time: float | None, save_every: float, callback: Callable[[Progress], None] | None
    ) -> None:
        """Take step after step, measuring and writing on the way."""
        trainer, saved, losses = self.trainer, self.started, []
        steps = trainer.config.steps
        try:
            while trainer.step < steps and not self._is_over(max_time):
                loss = trainer.run_step()
                losses.append(loss)
                figures = None
                if trainer.step % max(1, steps // _CURVE_POINTS) == 0 or trainer.step == steps:
                    figures = self._measure(losses)
                    losses.clear()
                if time.perf_counter() - saved > save_every:
                    self.save()
                    saved = time.perf_counter()
                if callback is not None and self.writes:
                    callback(Progress(trainer.step, steps, self.seconds, loss, figures))
        finally:  # also after Ctrl-C, or when the callback raises
            self.save()

    def _is_over(self, max_time: float | None) -> bool:
        over = max_time is not None and time.perf_counter() - self.started >= max_time
        return distributed.any_of(over)

    def _measure(self, losses: list[float]) -> dict[str, float] | None:
        """Add a point to the curves."""
        if not self.writes:
            return None
        trainer = self.trainer
        figures = measure(trainer.generator, self.validation, n_programs=100, n_datasets=32)
        point = {"step": trainer.step, "seconds": self.seconds, "loss": float(np.mean(losses))}
        waited = trainer.seconds_waited / max(time.perf_counter() - self.started, 1e-9)
        self.curves.append({**point, "waited": waited, **figures})
        svg = to_svg(self.curves, trainer.config.n_datasets)
        write_atomically(self.path.with_name(CURVES), svg.encode())
        return figures

    def card(self, n_validation: int) -> dict[str, Any]:
        """What the training says of its generator."""
        trainer, generator = self.trainer, self.trainer.generator.eval()
        return {
            "n_parameters": generator.n_parameters(),
            "config": asdict(generator.config),
            "constraints": asdict(generator.constraints),
            "prior": asdict(trainer.prior),
            "steps_done": trainer.step,
            "equations_seen": trainer.step * trainer.config.n_datasets,
            "seconds": round(self.seconds, 1),
            "validation": measure(generator, self.validation, n_programs=1000, n_datasets=n_validation),
            "curves": self.curves,
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
            },
        }
