"""`dgsr pretrain`: train a generator for a token library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from dgsr.cli.errors import input_errors
from dgsr.cli.options import QuietOption
from dgsr.cli.output import print_line, progress, warnings_as_notes


def pretrain(
    library: Annotated[str, typer.Option(help="Token library to learn.")],
    n_variables: Annotated[
        int,
        typer.Option(
            min=1, help="Most columns of its tables; a network of --config base serves wider ones, too."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for weights, card and checkpoints.")],
    objective: Annotated[
        str | None,
        typer.Option(help="cross-entropy, vpg or risk-seeking.", show_default="that of the training"),
    ] = None,
    config: Annotated[str, typer.Option(help="Sizes of the network: base, large or paper.")] = "base",
    training: Annotated[str, typer.Option(help="How to train: base, large or paper.")] = "base",
    start_from: Annotated[str | None, typer.Option(help="Generator to begin with.")] = None,
    max_time: Annotated[float | None, typer.Option(min=0.0, help="Most seconds of training.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches to train on.")] = None,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda.")] = "cpu",
    n_workers: Annotated[int, typer.Option(min=0, help="Processes that draw data sets in advance.")] = 0,
    random_state: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Seed.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on from the last state saved in the folder.")] = True,
    quiet: QuietOption = False,
) -> None:
    """Train a generator for a token library."""
    settings: dict[str, Any] = {"objective": objective, "steps": steps}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= {"config": config, "training": training, "start_from": start_from, "max_time": max_time}
    settings |= {"device": device, "n_workers": n_workers, "random_state": random_state, "resume": resume}
    with (
        input_errors(f"interrupted; the same command goes on from the last state saved in {out}"),
        warnings_as_notes(),
        progress(quiet or os.environ.get("RANK", "0") != "0", _line) as show,  # one process of torchrun's
    ):
        from dgsr.pretraining import pretrain as run

        run(library, n_variables, out, callback=show, **settings)
    print_line(f"The generator is in {out}; use it with dgsr fit --generator {out}")


def _line(progress: Any) -> str:
    return f"step {progress.step:,} of {progress.steps:,}, loss {progress.loss:.4g}"
