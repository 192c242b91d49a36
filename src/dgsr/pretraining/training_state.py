"""The state of a training in a file, from which an interrupted training resumes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from dgsr.generator.checkpoints import read_tensors, write_tensors
from dgsr.generator.config import INPUT_LAYOUT, current_fields
from dgsr.pretraining.prior import PRIOR_VERSION
from dgsr.pretraining.trainer import Trainer


def save_training_state(path: Path, trainer: Trainer, curves: list[dict[str, float]], seconds: float) -> None:
    """Write weights, optimiser, progress and settings of a training.

    Parameters
    ----------
    path : Path
    trainer : Trainer
    curves : list of dict
        Figures measured so far.
    seconds : float
        Time trained so far.
    """
    tensors = {f"weights.{name}": tensor for name, tensor in trainer.generator.state_dict().items()}
    for i, moments in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": tensor for name, tensor in moments.items()}
    entries = {
        "step": trainer.step,
        "baseline": trainer.baseline.value,
        "curves": curves,
        "seconds": seconds,
        "settings": _settings(trainer),
    }
    write_tensors(path, tensors, {"training": json.dumps(entries)})


def load_training_state(path: Path, trainer: Trainer) -> tuple[list[dict[str, float]], float]:
    """Put a trainer into the state that `save_training_state` wrote; return the curves and the seconds.

    Raises
    ------
    ValueError
        If the file is damaged, or belongs to a training with other settings.
    """
    try:
        entries, tensors = read_tensors(path, lambda header, shapes: json.loads(header["training"]))
        # Older files have neither.
        settings = {"input_layout": 1, "prior_version": 1} | entries["settings"]
        settings["config"] = current_fields(settings["config"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); choose another folder, or pass resume=False to begin anew."
        ) from error
    if settings != json.loads(json.dumps(_settings(trainer))):
        raise ValueError(
            f"{path} belongs to a run with other settings; resume with the same ones, "
            "choose another folder, or pass resume=False."
        )
    weights: dict[str, Tensor] = {}
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, rest = name.split(".", 1)
        if kind == "weights":
            weights[rest] = tensor
        else:
            i, moment = rest.split(".")
            moments.setdefault(int(i), {})[moment] = tensor
    trainer.generator.load_state_dict(weights)
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": moments, "param_groups": groups})
    trainer.step = entries["step"]
    trainer.baseline.value = entries["baseline"]
    return entries["curves"], entries["seconds"]


def _settings(trainer: Trainer) -> dict[str, Any]:
    """Return all settings that must be the same when a training resumes."""
    library, config = trainer.generator.library, trainer.config
    return {
        "library": [*library.operators, library.has_constants, library.n_variables],
        "config": asdict(trainer.generator.config),
        "constraints": asdict(trainer.generator.constraints),
        "prior": asdict(trainer.prior),
        # The number of steps may change in between; the learning rate follows.
        "training": {name: value for name, value in asdict(config).items() if name != "steps"},
        "seed": trainer.seed,
        "input_layout": INPUT_LAYOUT,
        "prior_version": PRIOR_VERSION,
    }
