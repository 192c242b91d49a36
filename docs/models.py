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
all equations have as many variables as the generator was trained with. "Solved" is the share that exact
search solves before anything is sampled ([decisions](decisions.md)), so that the generator need only copy
the solution. For other numbers of variables see [benchmarks](benchmarks.md).

A generator with a *guide* also says in one pass which token stands under which in the law: the nats of the
parent-child pairs of the true program, given its own data and another equation's data. These weights drive
the random choices of genetic programming.
"""

COLUMNS = (
    "nats of the truth: own data",
    "another's",
    "none",
    "solved",
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
    solved = f"{figures['looked_up']:.0%}" if "looked_up" in figures else "-"
    tokens = " ".join(library["operators"]) + (" const" if library["has_constants"] else "")
    how = (
        f"{training['objective']} on {card['equations_seen']:,} equations, {card['seconds'] / 60:.0f} minutes"
    )
    encoder = card["config"].get("encoder", "rows")
    guide = guide_of(card["name"], card["guide"]) if "guide" in card else ""
    return f"""
## {card["name"]}

Library `{library["name"]}` ({tokens}), 1 to {library["n_variables"]} variables,
programs of up to {card["constraints"]["max_length"]} tokens.
{card["n_parameters"]:,} parameters, encoder of {encoder}; {how}.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
| {likelihoods} | {solved} | {hits} |
{plot}{guide}"""


def guide_of(name: str, card: dict) -> str:
    """Return the lines of the page about the guide of a generator."""
    figures, prior = card["validation"], card["prior"]
    return f"""
Guide: cross-entropy on {card["equations_seen"]:,} equations, {prior["laws"]:.0%} of them laws,
{card["seconds"] / 60:.0f} minutes of a shared core; {figures["guide_nats_right"]:.1f} nats of the pairs
given the equation's own data, {figures["guide_nats_wrong"]:.1f} given another's.

![curves of the training of the guide](../pretrained/{name}/guide.svg)
"""


def page() -> str:
    """Return the whole page."""
    cards = sorted((ROOT / "pretrained").glob("*/card.json"))
    return INTRODUCTION + "".join(section(json.loads(card.read_text(encoding="utf-8"))) for card in cards)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
