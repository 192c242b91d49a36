"""The state of a training in a file, from which an interrupted training resumes."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import Tensor

from dgsr.files.container import from_json
from dgsr.generator.checkpoints import read_tensors, write_tensors
from dgsr.generator.config import INPUT_LAYOUT, current_fields
from dgsr.pretraining.prior import PRIOR_VERSION
from dgsr.pretraining.trainer import Trainer


def save_training_state(path: Path, trainer: Trainer, curves: list[dict[str, float]], seconds: float) -> None:
    """Write weights, optimiser, settings, the figures measured so far and the seconds of a training."""
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
    """Restore the state that `save_training_state` wrote in a trainer; return the curves and the seconds.

    Raises
    ------
    ValueError
        If the file is damaged, or belongs to a training with other settings.
    """
    try:
        header, tensors, _ = read_tensors(path)
        entries = from_json(header["training"])
        # Older files lack these four.
        settings = {"input_layout": 1, "prior_version": 1} | entries["settings"]
        settings["config"] = current_fields(settings["config"])
        mine = json.loads(json.dumps(_settings(trainer)))
        for name in ("n_variables", "excluded"):
            settings.setdefault(name, mine[name])
        found = [entries[name] for name in ("step", "baseline", "curves", "seconds")]
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise _damaged(path, error) from error
    if settings != mine:
        raise ValueError(
            f"{path} belongs to a run with other settings; resume with the same ones, "
            "choose another folder, or pass resume=False."
        )
    weights: dict[str, Tensor] = {}
    moments: dict[int, dict[str, Tensor]] = {}
    try:
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
    except (LookupError, ValueError, RuntimeError) as error:
        raise _damaged(path, error) from error
    trainer.step, trainer.baseline.value, curves, seconds = found
    return curves, seconds


def _damaged(path: Path, error: Exception) -> ValueError:
    reason = " ".join(str(error).split())  # messages of torch have several lines
    return ValueError(
        f"{path} is damaged ({reason}); choose another folder, or pass resume=False to begin anew."
    )


def _settings(trainer: Trainer) -> dict[str, Any]:
    """Return all settings that must be the same when a training resumes."""
    library, config, excluded = trainer.generator.library, trainer.config, trainer.stream.excluded
    return {
        "library": [*library.operators, library.has_constants, library.n_variables],
        "config": asdict(trainer.generator.config),
        "constraints": asdict(trainer.generator.constraints),
        "prior": asdict(trainer.prior),
        # The number of steps may differ; the schedule of the learning rate then changes with it.
        "training": {name: value for name, value in asdict(config).items() if name != "steps"},
        "seed": trainer.seed,
        "input_layout": INPUT_LAYOUT,
        "prior_version": PRIOR_VERSION,
        "n_variables": trainer.stream.n_variables,
        # The equations that must not be drawn: those of benchmarks, and those of the validation set.
        "excluded": sha256(excluded.values.tobytes() + excluded.skeletons.tobytes()).hexdigest(),
    }
