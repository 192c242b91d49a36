"""Write docs/models.md, the page of the shipped generators, from their cards: `python docs/models.py`."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"

INTRODUCTION = """# Shipped generators

Made by `python docs/models.py` from the cards in [pretrained](../pretrained), which hold every setting.
The *conditioning gap* is the gain in log-likelihood of the true program of a held-out equation from its own
data over the data of another equation, the wrong-data control. "Found" is the share of the held-out
equations whose function is among the first samples, after fitting constants; every equation has as many
variables as the generator was trained with. "Solved before" is the share of the equations whose program
exact search finds before anything is sampled ([decisions](decisions.md)); the generator need only copy it.
For other numbers of variables see [benchmarks](benchmarks.md).
"""

COLUMNS = (
    "log-likelihood of the true program (nats): own data",
    "wrong data",
    "no data",
    "solved before",
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
    looked_up = f"{figures['looked_up']:.0%}" if "looked_up" in figures else "-"
    tokens = " ".join(library["operators"]) + (" const" if library["has_constants"] else "")
    how = (
        f"{training['objective']} on {card['equations_seen']:,} equations, {card['seconds'] / 60:.0f} minutes"
    )
    encoder = card["config"].get("encoder", "rows")
    return f"""
## {card["name"]}

Library `{library["name"]}` ({tokens}), 1 to {library["n_variables"]} variables,
programs of up to {card["constraints"]["max_length"]} tokens.
{card["n_parameters"]:,} parameters, encoder of {encoder}; {how}.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
| {likelihoods} | {looked_up} | {hits} |
{plot}"""


def page() -> str:
    """Return the whole page."""
    cards = sorted((ROOT / "pretrained").glob("*/card.json"))
    return INTRODUCTION + "".join(section(json.loads(card.read_text(encoding="utf-8"))) for card in cards)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
