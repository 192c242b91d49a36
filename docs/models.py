"""Write docs/models.md, the page of the shipped generators, from their cards: `python docs/models.py`."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"

INTRODUCTION = """# Shipped generators

This page is made by `python docs/models.py` from the cards in [pretrained](../pretrained), which have every
setting. The first columns are the log-likelihood in nats of the true program of a held-out equation, given
its own data, another equation's data, and none; the *conditioning gap* is the first minus the second. "Found"
is the share of the held-out equations whose function is among the first samples, after constants are fitted;
all equations have tables of as many columns as the generator was trained with, or of five where its training
usually has no more. Equations are held out in every order of their columns. Some benchmark
problems were among the equations of the training nevertheless; see
[decontamination](benchmarks.md#decontamination). Both generators were trained on an H200 GPU.
For tables of other sizes see [the network alone](benchmarks.md#the-network-alone).

A generator with a *guide* also says which token stands under which in the law. Its figures are nats of the
parent-child pairs of the true program. These weights drive the random choices of genetic programming.
"""

COLUMNS = (
    "nats of the truth: own data",
    "another's",
    "none",
    "found in 1",
    "10",
    "100",
    "1,000",
    "100, wrong data",
)


def section(card: dict) -> str:
    """Return the part of the page about one generator."""
    figures, library, training = card["validation"], card["library"], card["training"]
    hits = " | ".join(f"{figures[f'hit_{n}']:.0%}" for n in ("1", "10", "100", "1000", "100_wrong"))
    likelihoods = " | ".join(
        f"{figures[f'log_likelihood_{name}']:.1f}" for name in ("right", "wrong", "none")
    )
    picture = ROOT / "pretrained" / card["name"] / "curves.svg"
    plot = (
        f"\n![curves of the training](../pretrained/{card['name']}/curves.svg)\n" if picture.exists() else ""
    )
    tokens = " ".join(library["operators"]) + (" const" if library["has_constants"] else "")
    equations = f"{card['equations_seen']:,} equations"
    if transformed := card["prior"].get("transformed"):
        equations += f", {transformed:.0%} of them with a scale and an offset of the target"
    how = f"{training['objective']} on {equations}, {card['seconds'] / 60:.0f} minutes"
    if start := training.get("start_from"):
        how += f" after those of {start}, an earlier generator"
    encoder = card["config"].get("encoder", "rows")
    guide = ""
    if "guide_nats_right" in figures:
        nats = [f"{figures[f'guide_nats_{name}']:.1f}" for name in ("right", "wrong", "none")]
        guide = "\nGuide: {} nats given the equation's own data, {} given another's, {} given none.\n"
        guide = guide.format(*nats)
    return f"""
## {card["name"]}

Library `{library["name"]}` ({tokens}), 1 to {library["n_variables"]} variables,
programs of up to {card["constraints"]["max_length"]} tokens.
{card["n_parameters"]:,} parameters, encoder of {encoder}; {how}.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
| {likelihoods} | {hits} |
{plot}{guide}"""


def page() -> str:
    """Return the whole page."""
    cards = sorted((ROOT / "pretrained").glob("*/card.json"))
    return INTRODUCTION + "".join(section(json.loads(card.read_text(encoding="utf-8"))) for card in cards)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
