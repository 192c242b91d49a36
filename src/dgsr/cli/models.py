"""`dgsr models`: list the pre-trained generators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dgsr.cli.options import JsonOption
from dgsr.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from dgsr.generator.checkpoints import GeneratorInfo


def models(as_json: JsonOption = False) -> None:
    """List the pre-trained generators."""
    from dgsr.generator.checkpoints import list_generators

    generators = list_generators()
    if as_json:
        print_json([{"name": info.name, "path": str(info.path), **info.card} for info in generators])
    elif generators:
        print_table([_row(info) for info in generators])
        print_line()
        print_line(
            "conditioning gap: nats that the true program gains by its own data over another data set's"
        )
        print_line("found: share of the held-out equations that are among the first 100 samples")
    else:
        print_line("No pre-trained generator is installed; make one with dgsr pretrain.")


def _row(info: GeneratorInfo) -> dict[str, Any]:
    card = info.card
    figures = card["validation"]
    return {
        "name": info.name,
        "library": card["library"]["name"],
        "variables": card["library"]["n_variables"],
        "parameters": f"{card['n_parameters']:,}",
        "conditioning gap": round(figures["log_likelihood_right"] - figures["log_likelihood_wrong"], 1),
        "found": f"{figures['hit_100']:.0%}",
        "trained": f"{card['seconds'] / 60:.0f} min",
    }
