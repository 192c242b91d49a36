"""The registry of tables: problems, methods, seconds and named tests."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dgsr.benchmarking.drawn import PREFIX, problem_names
from dgsr.benchmarking.runner import UNBOUNDED
from dgsr.problems import load_set

#: Two pairs of methods, in each of which only the network differs; see `dgsr.benchmarking.METHODS`.
PAIRED_METHODS = ("dgsr", "exact", "generator", "gp")


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
    n_problems: int = 60  # number of problems of a drawn set
    # Seed from which they are drawn: the day on which the registry was written, so that no problem had been
    # looked at.
    draw_seed: int = 20261130

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


#: The tables by name.
TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table("paper", "The eight recovery sets of the paper",
              ("feynman_d2", "feynman_d5", "feynman_additional", "synthetic_d12", "nguyen", "nguyen_c", "r",
               "livermore"),
              max_time=7.0, methods=("dgsr", "generator", "gp"), seeds=3, budget=2_000_000),
        Table("srbench", "SRBench", ("srbench_feynman", "strogatz"), max_time=10.0,
              methods=(*PAIRED_METHODS, "operon")),
        Table("srbench_noise", "SRBench, the same problems", ("srbench_feynman", "strogatz"), max_time=8.0,
              methods=("dgsr", "generator", "gp"), noise=(0.01,)),
        Table("drawn_laws", "Laws drawn afresh", ("drawn:laws",), max_time=5.0, noise=(0.0, 0.01),
              methods=(*PAIRED_METHODS, "operon")),
        Table("drawn_physics", "Equations with constants, drawn afresh", ("drawn:physics",), max_time=5.0),
        Table("drawn_koza", "Equations without constants, drawn afresh", ("drawn:koza",), max_time=5.0),
        Table("wide", "Laws in tables of 30 columns, drawn afresh", ("drawn:wide-30",), max_time=15.0,
              noise=(0.01,), methods=(*PAIRED_METHODS, "operon", "operon-selected")),
        Table("laws", "Laws of textbooks, which are in no benchmark", ("laws",), max_time=5.0,
              noise=(0.0, 0.01), methods=("dgsr", "exact", "operon")),
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
