"""The registry of tables: problems, methods, seconds and named tests, and figures that others published."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dgsr.benchmarking.drawn import PREFIX, problem_names
from dgsr.benchmarking.runner import UNBOUNDED
from dgsr.problems import load_set

#: Two pairs of methods, in each of which only the network differs; see `dgsr.benchmarking.METHODS`.
PAIRED_METHODS = ("dgsr", "exact", "generator", "gp")


class Published(NamedTuple):
    """A figure that others published for a set of problems."""

    set: str
    method: str
    recovery: float  # % of the runs
    source: str
    interval: float | None = None  # half-width of its 95% interval, in %
    evaluations: int | None = None  # equations until the law is found, see `dgsr.benchmarking.summaries`


@dataclass(frozen=True)
class Table:
    """A table: problems, methods and levels of noise, of which every combination is run."""

    name: str
    title: str
    sets: tuple[str, ...]  # names of sets of problems, or one drawn set, such as "drawn:laws"
    max_time: float  # most seconds of search in a run
    methods: tuple[str, ...] = PAIRED_METHODS  # keys of `dgsr.benchmarking.METHODS`
    noise: tuple[float, ...] = (0.0,)  # levels of noise on y
    seeds: int = 1  # runs of each problem, method and level of noise
    budget: int = UNBOUNDED  # most equations that a run evaluates
    published: tuple[Published, ...] = ()
    n_problems: int = 0  # number of problems of a drawn set
    draw_seed: int = 0  # seed from which they are drawn
    note: str = ""  # what a reader must know to compare

    @property
    def is_drawn(self) -> bool:
        return self.sets[0].startswith(PREFIX)

    @property
    def problems(self) -> list[str]:
        """The names of all problems."""
        if self.is_drawn:
            return problem_names(self.sets[0].removeprefix(PREFIX), self.n_problems, self.draw_seed)
        return [problem.name for name in self.sets for problem in load_set(name)]

    @property
    def parts(self) -> list[Table]:
        """Tables of one set of problems each."""
        return [
            replace(self, sets=(name,), published=tuple(p for p in self.published if p.set == name))
            for name in self.sets
        ]

    @property
    def n_runs(self) -> int:
        return len(self.problems) * len(self.methods) * self.seeds * len(self.noise)

    def with_methods(self, methods: Sequence[str]) -> Table:
        """Return the table with only some of its methods; ValueError if it lacks one of them."""
        others = [method for method in methods if method not in self.methods]
        if others:
            raise ValueError(
                f"methods={others} are not in the table {self.name}; choose from {', '.join(self.methods)}."
            )
        return replace(self, methods=tuple(dict.fromkeys(methods)))

    @property
    def core_hours(self) -> float:
        """Hours on one core if every run took its most seconds."""
        return self.n_runs * self.max_time / 3600.0


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
# Settings of the drawn tables. The seed is the day on which the registry was written, so that no problem had
# been looked at.
_DRAWN: dict[str, Any] = {"n_problems": 60, "draw_seed": 20261130, "note": _DRAWN_NOTE}

#: The tables by name.
TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table("paper", "The eight recovery sets of the paper", tuple(dict.fromkeys(p.set for p in _PAPER)),
              max_time=7.0, methods=("dgsr", "generator", "gp"), seeds=3, budget=2_000_000, published=_PAPER,
              note="The paper has up to 2,000,000 equations a run and no limit of seconds."),
        Table("srbench", "SRBench",
              ("srbench_feynman", "strogatz"), max_time=10.0, methods=(*PAIRED_METHODS, "operon"),
              published=_SRBENCH, note=f"{_SRBENCH_NOTE} {_PEERS_NOTE}"),
        Table("srbench_noise", "SRBench, the same problems", ("srbench_feynman", "strogatz"), max_time=8.0,
              methods=("dgsr", "generator", "gp"), noise=(0.01,),
              note=f"The noise is in root mean squares of y, as SRBench adds it. {_SRBENCH_NOTE}"),
        Table("drawn_laws", "Laws drawn afresh", ("drawn:laws",), max_time=5.0, noise=(0.0, 0.01),
              methods=(*PAIRED_METHODS, "operon"), **_DRAWN | {"note": f"{_DRAWN_NOTE} {_PEERS_NOTE}"}),
        Table("drawn_physics", "Equations with constants, drawn afresh", ("drawn:physics",), max_time=5.0,
              **_DRAWN),
        Table("drawn_koza", "Equations without constants, drawn afresh", ("drawn:koza",), max_time=5.0,
              **_DRAWN),
        Table("wide", "Laws in tables of 30 columns, drawn afresh", ("drawn:wide-30",), max_time=15.0,
              noise=(0.01,), methods=(*PAIRED_METHODS, "operon", "operon-selected"),
              **_DRAWN | {"note": f"{_DRAWN_NOTE} {_PEERS_NOTE}"}),
        Table("laws", "Laws of textbooks, which are in no benchmark", ("laws",), max_time=5.0,
              noise=(0.0, 0.01), methods=("dgsr", "exact", "operon"),
              note="The noise is in root mean squares of y. A law is found by the rule for drawn equations, "
                   f"since SRBench's rounds constants such as Boltzmann's to 0. {_PEERS_NOTE}"),
    )
}  # fmt: skip


class NamedTest(NamedTuple):
    """A test that was named before the tables were run: does the first method find more laws?"""

    table: str
    noise: float
    first: str
    second: str
    verdict: str = "found"  # or "form": whether the chosen formula has the form of the law


#: The tests, all of which are reported, with Holm's correction for their number.
NAMED_TESTS = (
    NamedTest("paper", 0.0, "generator", "gp"),
    NamedTest("srbench", 0.0, "generator", "gp"),
    NamedTest("srbench_noise", 0.01, "generator", "gp"),
    NamedTest("drawn_laws", 0.01, "generator", "gp", "form"),
    NamedTest("drawn_laws", 0.01, "dgsr", "operon", "form"),
    NamedTest("drawn_physics", 0.0, "generator", "gp"),
    NamedTest("drawn_koza", 0.0, "generator", "gp"),
    NamedTest("wide", 0.01, "generator", "gp", "form"),
    NamedTest("wide", 0.01, "dgsr", "exact", "form"),
    NamedTest("wide", 0.01, "dgsr", "operon", "form"),
)


def table_of(name: str) -> Table:
    """Return the table with a name; ValueError, with names that are close, if there is none."""
    if name not in TABLES:
        close = difflib.get_close_matches(name, TABLES, n=3) or list(TABLES)
        raise ValueError(
            f"table={name!r} is unknown; choose from {', '.join(close)} (dgsr bench --tables lists all)."
        )
    return TABLES[name]
