"""Algorithm 1 of the paper, from its settings to the folder of the generator."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library, get_library
from dgsr.files.writing import write_atomically
from dgsr.generator.adaptation import adapted, can_adapt
from dgsr.generator.checkpoints import (
    CURVES,
    check_device,
    load_generator,
    refuse_user_operators,
    save_generator,
)
from dgsr.generator.config import CONFIGS, GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.pretraining import distributed
from dgsr.pretraining.conditioning_gap import ValidationSet, draw_validation_set, measure
from dgsr.pretraining.config import PRETRAINING_CONFIGS, PretrainingConfig
from dgsr.pretraining.curves import to_svg
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import PRIOR_VERSION, Prior
from dgsr.pretraining.trainer import Trainer
from dgsr.pretraining.training_state import load_training_state, save_training_state
from dgsr.problems import list_sets
from dgsr.reporting.progress import begin_phase

_Settings = TypeVar("_Settings")

# Number of measurements during a training.
_CURVE_POINTS = 20


@dataclass(frozen=True)
class Progress:
    """State of a training after a step, for the callback of `pretrain`.

    Parameters
    ----------
    step, steps : int
        Number of this step, and of all steps.
    seconds : float
        Time of this call and of the calls that it resumes.
    loss : float
        Loss of the step's mini-batch.
    validation : dict of str to float or None
        Figures of `dgsr.pretraining.conditioning_gap.measure`, after steps at which they are measured.
    share : float
        Share of the steps or of `max_time` that is done, 0 to 1, whichever is larger.
    seconds_left : float
        Time that the rest will take, if the steps go on as fast as in this call.
    """

    step: int
    steps: int
    seconds: float
    loss: float
    validation: dict[str, float] | None
    share: float
    seconds_left: float


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
        Name of a preset, or a library.
    n_variables : int
        Most variables a data set may have.
    out : str or Path
        Folder for ``weights.safetensors`` and ``card.json``; for ``curves.svg``, which shows the course of
        the training where matplotlib is installed; and for ``training.safetensors``, from which the same
        call resumes after an interruption.
    config : str or GeneratorConfig
        Sizes of the network, or the name of a preset: ``"base"``, for a processor; ``"large"``, the sizes of
        the shipped generators; or ``"paper"``. A preset's target is standardised in a library with constants.
    training : str or PretrainingConfig
        Settings of the training, or the name of a preset: ``"base"``, ``"large"``, for a GPU, or ``"paper"``.
    prior : Prior, optional
        Distribution of equations and inputs; by default `Prior.default_for` the library, and for a generator
        with a guide `Prior.varied_for`.
    constraints : Constraints, optional
        Limits of the programs. By default their largest length is that of `config`, and with the settings of
        the paper their smallest is 4.
    start_from : str or Path, optional
        Name or folder of a generator with whose weights, sizes and constraints the training begins; `config`
        is ignored, and `constraints` must not differ. A generator for another library must have a guide; the
        weights of common tokens are then used.
    max_time : float, optional
        Seconds after which the training stops early; another call resumes it.
    device : str
        Device of the training: ``"cpu"`` or ``"cuda"``.
    n_workers : int
        Processes that draw data sets in advance, for each process that trains; with 0 it draws them itself.
        The result does not depend on it.
    random_state : int
        Seed of the initial weights and of the data.
    resume : bool
        Whether to resume from ``training.safetensors`` if it exists. All settings except the number of steps
        must be the same.
    n_validation : int
        Number of held-out equations for the figures of the card, at least 2, since the conditioning gap
        compares each with another one.
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
        If a setting is unknown or out of range, `out` holds a run with other settings, or there is no such
        device.

    Notes
    -----
    Processes started by torchrun train one generator together, each on some of the groups of a mini-batch;
    the first process writes the files.

    References
    ----------
    Holt, Qian, van der Schaar, ICLR 2023, algorithm 1.
    """
    if isinstance(library, str):
        library = get_library(library, n_variables)
    library = library.with_variables(n_variables)
    refuse_user_operators(library)
    if n_validation < 2:
        raise ValueError(f"n_validation={n_validation} must be at least 2, since equations are compared.")
    min_length = 4 if training == "paper" else 1  # appendix "Dataset Generation and Training"
    training = replace(_preset("training", training, PRETRAINING_CONFIGS), **changes)
    check_device(device)
    distributed.take_device(device)
    if start_from is None:
        sizes = _preset("config", config, CONFIGS)
        if isinstance(config, str) and library.has_constants:
            sizes = replace(sizes, target="standardised")
        limits = constraints or Constraints(min_length=min_length, max_length=sizes.max_length)
        generator = Generator.untrained(library, sizes, limits, random_state)  # line 1
    else:
        generator = load_generator(start_from, device)
        if constraints is not None and constraints != generator.constraints:
            raise ValueError(
                f"constraints are not those of start_from={str(start_from)!r}, which are "
                f"{generator.constraints}; leave them out."
            )
        if not can_adapt(generator.config.encoder, generator.library, library):
            raise ValueError(
                f"start_from={str(start_from)!r} is a generator for the library {generator.library.name!r}, "
                f"which cannot be adapted to {library.name!r}; start from another one."
            )
        generator = adapted(generator, library, generator.config.max_length, for_training=True)
    if prior is None:
        usual = Prior.varied_for if generator.guide is not None else Prior.default_for
        prior = usual(library, n_variables)
    begin_phase("drawing the equations that are held out")
    generator = generator.to(device).train()
    held_out = benchmark_decontamination(generator.library, generator.constraints)
    columns = min(n_variables, training.usual_columns)
    validation = draw_validation_set(generator, prior, held_out, n_validation, random_state, columns)
    held_out = validation.added_to(held_out)
    out = Path(out)
    with distributed.process_group(device):
        trainer = Trainer(generator, prior, training, held_out, random_state, n_workers, n_variables)
        run = _Run(trainer, validation, out, resume)
        run.train(max_time, save_every, callback)  # lines 2 to 13
        if distributed.rank() == 0:
            origin = {"seed": random_state, "start_from": start_from and Path(start_from).name}
            about = {"name": out.name, "library": library.to_json(), "held_out_sets": list_sets()}
            training_card = asdict(training) | origin
            save_generator(generator, out, {**about, "training": training_card, **run.card(n_validation)})
    return generator


def _preset(parameter: str, value: str | _Settings, presets: Mapping[str, _Settings]) -> _Settings:
    """Return the settings of a preset, or given settings unchanged; raise ValueError for unknown names."""
    if not isinstance(value, str):
        return value
    if value not in presets:
        raise ValueError(f"{parameter}={value!r} is unknown; choose from {', '.join(presets)}.")
    return presets[value]


class _Run:
    """A training and its files; it resumes an earlier call whose files exist."""

    def __init__(self, trainer: Trainer, validation: ValidationSet, out: Path, resume: bool) -> None:
        self.trainer = trainer
        self.validation = validation
        self.path = out / "training.safetensors"
        self.writes_files = distributed.rank() == 0
        self.curves: list[dict[str, float]] = []
        self.earlier_seconds = 0.0
        out.mkdir(parents=True, exist_ok=True)
        if resume and self.path.is_file():
            self.curves, self.earlier_seconds = load_training_state(self.path, trainer)
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds of training, including earlier calls."""
        return self.earlier_seconds + time.perf_counter() - self.started

    def save(self) -> None:
        """Write the training state."""
        if self.writes_files:
            save_training_state(self.path, self.trainer, self.curves, self.seconds)

    def train(
        self, max_time: float | None, save_every: float, callback: Callable[[Progress], None] | None
    ) -> None:
        """Train until the last step or `max_time`; measure and save in between."""
        trainer, saved, losses = self.trainer, self.started, []
        steps, first = trainer.config.steps, trainer.step
        begin_phase("training")
        try:
            while trainer.step < steps and not self._is_over(max_time):  # line 2
                loss = trainer.run_step()  # lines 3 to 12
                losses.append(loss)
                figures = None
                if trainer.step % max(1, steps // _CURVE_POINTS) == 0 or trainer.step == steps:
                    figures = self._measure(losses)
                    losses.clear()
                    begin_phase("training")
                if time.perf_counter() - saved > save_every:
                    self.save()
                    saved = time.perf_counter()
                if callback is not None and self.writes_files:
                    now = time.perf_counter() - self.started
                    share, left = trainer.step / steps, now * (steps - trainer.step) / (trainer.step - first)
                    if max_time is not None:
                        share, left = max(share, min(now / max_time, 1.0)), min(left, max_time - now)
                    callback(Progress(trainer.step, steps, self.seconds, loss, figures, share, left))
        finally:  # the state is also saved after Ctrl-C and errors of the callback
            self.save()

    def _is_over(self, max_time: float | None) -> bool:
        """Return whether the time is over in any process."""
        over = max_time is not None and time.perf_counter() - self.started >= max_time
        return distributed.any_of(over)

    def _measure(self, losses: list[float]) -> dict[str, float] | None:
        """Measure the generator, add a point to the curves and draw them."""
        if not self.writes_files:
            return None
        trainer = self.trainer
        figures = measure(trainer.generator, self.validation, n_programs=100, n_datasets=32)
        point = {"step": trainer.step, "seconds": self.seconds, "loss": float(np.mean(losses))}
        waited = trainer.seconds_waited / max(time.perf_counter() - self.started, 1e-9)
        self.curves.append({**point, "waited": waited, **figures})
        svg = to_svg(self.curves, trainer.config.n_datasets)
        if svg is not None:
            write_atomically(self.path.with_name(CURVES), svg.encode())
        return figures

    def card(self, n_validation: int) -> dict[str, Any]:
        """Return the entries of the generator's card that come from its training."""
        trainer, generator = self.trainer, self.trainer.generator.eval()
        versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
        return {
            "n_parameters": generator.n_parameters(),
            "config": asdict(generator.config),
            "constraints": asdict(generator.constraints),
            "prior": asdict(trainer.prior),
            "prior_version": PRIOR_VERSION,
            "steps_done": trainer.step,
            "equations_seen": trainer.step * trainer.config.n_datasets,
            "seconds": round(self.seconds, 1),
            "validation": measure(generator, self.validation, n_programs=1000, n_datasets=n_validation),
            "curves": self.curves,
            "versions": versions,
        }
