"""What pages of tables say beside our runs: figures that others published, and notes for readers."""

from __future__ import annotations

from typing import Any, NamedTuple


class Published(NamedTuple):
    """A figure that others published for a set of problems."""

    set: str
    method: str
    recovery: float  # % of the runs
    source: str
    interval: float | None = None  # half-width of its 95% interval, in %
    evaluations: int | None = None  # equations until the law is found, see `dgsr.benchmarking.summaries`


def _paper(set_name: str, source: str, **figures: tuple[Any, ...]) -> tuple[Published, ...]:
    """Return figures of the paper, given as recovery, half-width of its interval, and evaluations."""
    return tuple(
        Published(set_name, method, of_method[0], f"DGSR paper, {source}", *of_method[1:])
        for method, of_method in figures.items()
    )


_PAPER = (
    *_paper("feynman_d2", "tables of Feynman d=2", DGSR=(85.36, 0.69, 66_404), NGGP=(85.71, 0.0, 112_798),
            GP=(50.0, 7.2, 4_033)),
    *_paper("feynman_d5", "tables of Feynman d=5", DGSR=(69.69, 3.38, 731_442), NGGP=(63.44, 6.64, 912_594),
            GP=(15.0, 12.39, 198_455)),
    *_paper("feynman_additional", "table of additional Feynman", DGSR=(67.81, 4.6, 318_042),
            NGGP=(67.81, 3.0, 328_499)),
    *_paper("synthetic_d12", "table of Synthetic d=12", DGSR=(37.86, 5.62, 271_302),
            NGGP=(28.57, 0.0, 828_905), GP=(0.0, 0.0)),
    *_paper("nguyen", "table of Nguyen", DGSR=(87.5, 4.07), NGGP=(91.67, 0.0)),
    *_paper("nguyen_c", "table of Nguyen with constants", DGSR=(100.0, 0.0), NGGP=(100.0, 0.0)),
    *_paper("r", "table of R rationals", DGSR=(51.66, 7.23), NGGP=(43.33, 5.06)),
    *_paper("livermore", "table of Livermore", DGSR=(71.36, 9.82), NGGP=(73.63, 7.26)),
)  # fmt: skip
_SRBENCH = (
    Published("srbench_feynman", "DGSR", 63.25, "DGSR paper, appendix SRBench Results, of 130 laws"),
    Published("srbench_feynman", "AI Feynman", 52.65, "DGSR paper, appendix SRBench Results, of 130 laws"),
)
#: Figures by the name of the table.
PUBLISHED = {"paper": _PAPER, "srbench": _SRBENCH}

_SRBENCH_NOTE = (
    "These are 119 laws of Feynman's lectures and 14 systems of Strogatz. There are up to 7,500 rows to fit, "
    "and one seed, because more seeds of the same problems hardly narrow the interval."
)
_DRAWN_NOTE = (
    "The noise is in standard deviations of y. An equation is found if the NMSE of the formula on 1,000 "
    "fresh rows without noise is below 1e-8, or a fiftieth of the square of the noise if that is more."
)
_PEERS_NOTE = (
    "Each method has one thread. `dgsr` finishes its formulas after the limit, which is that of the search, "
    "so compare the seconds, too. The settings of pyoperon are in `dgsr.benchmarking.peers`."
)
#: What a reader must know to compare, by the name of the table.
NOTES = {
    "paper": "The paper has up to 2,000,000 equations a run and no limit of seconds.",
    "srbench": f"{_SRBENCH_NOTE} {_PEERS_NOTE}",
    "srbench_noise": f"The noise is in root mean squares of y, as SRBench adds it. {_SRBENCH_NOTE}",
    "drawn_laws": f"{_DRAWN_NOTE} {_PEERS_NOTE}",
    "drawn_physics": _DRAWN_NOTE,
    "drawn_koza": _DRAWN_NOTE,
    "wide": f"{_DRAWN_NOTE} {_PEERS_NOTE}",
    "laws": "The noise is in root mean squares of y. A law is found by the rule for drawn equations, since "
    f"SRBench's rounds constants such as Boltzmann's to 0. {_PEERS_NOTE}",
}
