"""The tables of the DGSR paper and of the field as data: their runs, and figures that others published."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dgsr.benchmarking.drawn import PREFIX, problem_names
from dgsr.problems import load_set

#: The default methods of a table: the whole search, and the search without some of its parts; see
#: `dgsr.benchmarking.METHODS`.
USUAL_METHODS = ("dgsr", "generator", "exact", "gp", "blind")
#: The methods of the tables that take long: two pairs that differ only in the network.
PAIRED_METHODS = ("dgsr", "generator", "exact", "gp")
#: The methods of the tables with all controls.
CONTROL_METHODS = (*USUAL_METHODS, "misled", "features", "untrained")
#: The methods of the tables that compare the package with others of the field.
PEER_METHODS = ("dgsr", "operon", "gplearn")

#: The methods of the tables of ablations: without encoder, without training, with refinement by three
#: objectives, and the same without evolution.
_ABLATIONS = (
    "generator", "blind", "untrained", "pqt", "vpg", "risk-seeking",
    "pqt-alone", "vpg-alone", "risk-seeking-alone", "sampled", "untrained-alone",
)  # fmt: skip


class Published(NamedTuple):
    """A figure that others published."""

    method: str
    recovery: float  # % of the runs
    source: str
    interval: float | None = None  # half-width of its 95% interval, in %
    evaluations: int | None = None  # equations until the law is found, see `dgsr.benchmarking.by_problem`
    noise: float = 0.0
    rows: int | None = None


class Setting(NamedTuple):
    """Settings that all runs of one part of a table have in common."""

    noise: float = 0.0
    rows: int | None = None  # number of rows to fit; None for that of the problem


@dataclass(frozen=True)
class Table:
    """A table: problems, methods and settings, of which every combination is run."""

    name: str
    title: str
    sets: tuple[str, ...]  # names of sets of problems, or one drawn set, such as "drawn:laws"
    seeds: int = 5  # runs of each problem, method and setting
    max_time: float = 60.0  # most seconds of search in a run
    budget: int = 2_000_000  # most equations that a run evaluates
    settings: tuple[Setting, ...] = (Setting(),)
    methods: tuple[str, ...] = USUAL_METHODS  # keys of `dgsr.benchmarking.METHODS`
    published: tuple[Published, ...] = ()
    n_problems: int = 0  # number of problems of a drawn set
    draw_seed: int = 0  # seed from which they are drawn
    note: str = ""  # differences from the published runs

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
        return len(self.problems) * len(self.methods) * self.seeds * len(self.settings)

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


def _paper(dgsr, nggp, gp=None, *, source: str) -> tuple[Published, ...]:
    """Return figures of the paper, given as recovery, half-width of its interval, and evaluations."""
    methods = {"DGSR": dgsr, "NGGP": nggp, "GP": gp}
    return tuple(
        Published(method, figures[0], source, *figures[1:])
        for method, figures in methods.items()
        if figures is not None
    )


_D2, _D5 = "DGSR paper, tables of Feynman d=2", "DGSR paper, tables of Feynman d=5"
_FEW_ROWS = "DGSR paper, table of the ablation of data with noise"
_ADDITIONAL = "DGSR paper, table of additional synthetic experiments"
_D5_ABLATIONS = "DGSR paper, table of the ablation study"
_WITHOUT_EVOLUTION = "DGSR paper, table of the ablated optimizer"
_SRBENCH_NOTE = "There is one seed, because more seeds of the same problems hardly narrow the interval."
_NOISE_NOTE = "The noise is in root mean squares of y, as SRBench adds it."
_DRAWN_NOISE_NOTE = (
    "The noise is in standard deviations of y. An equation is found if the NMSE of the formula on 1,000 "
    "fresh rows without noise is below 1e-8, or a fiftieth of the square of the noise if that is more."
)
_LAWS_NOTE = (
    f"{_NOISE_NOTE} A law is found by the rule for drawn equations, since SRBench's rounds constants such as "
    "Boltzmann's to 0: the NMSE of the formula on 1,000 fresh rows without noise is below 1e-8, or a "
    "fiftieth of the square of the noise in standard deviations of y if that is more."
)
_PEERS_NOTE = (
    "Seconds alone limit a run, and each method has one thread. The limit is that of the search: `dgsr` "
    "finishes its formulas after it, so compare the seconds, too. The settings of the peers, and what they "
    "count as an evaluation, are in the docstrings of `dgsr.benchmarking.peers`."
)

# Settings of tables of a drawn set. The seed is the first eight digits of the commit at which the search was
# frozen, which is a later one for libraries without constants.
_DRAWN: dict[str, Any] = {
    "max_time": 5.0, "budget": 10**9, "n_problems": 200, "draw_seed": 0xAA75311F,
}  # fmt: skip
# Settings of tables for the present generators, with one seed per problem. The seed of the set is the first
# digits of the commit before these generators.
_NOW = _DRAWN | {"draw_seed": 0xAF58F7E9, "seeds": 1}
_CONTROLS = _NOW | {"methods": CONTROL_METHODS}
_NOISY = _NOW | {"settings": (Setting(0.01), Setting(0.05)), "note": _DRAWN_NOISE_NOTE}
_LONGER = _NOISY | {"max_time": 15.0, "settings": (Setting(), Setting(0.01)), "methods": PAIRED_METHODS}
_DRAWN_KOZA = _DRAWN | {"draw_seed": 0xF4D3B3A7}
# Settings of tables of equations that the paper draws from its prior, of which 200 are run.
_EXTENDED = _DRAWN_KOZA | {
    "max_time": 30.0, "budget": 2_000_000,
    "note": "The paper draws 5,000 equations and counts symbolic recovery. Here an equation is found if the "
            "NMSE of the formula on 1,000 fresh rows is below 1e-8.",
}  # fmt: skip

#: The tables by name, in the order of what their figures show for the time that they take.
TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table("feynman_d2", "Feynman, two variables", ("feynman_d2",),
              published=_paper((85.36, 0.69, 66_404), (85.71, 0.0, 112_798), (50.0, 7.2, 4_033), source=_D2)),
        Table("feynman_d5", "Feynman, five variables", ("feynman_d5",),
              published=_paper((69.69, 3.38, 731_442), (63.44, 6.64, 912_594), (15.0, 12.39, 198_455),
                               source=_D5)),
        Table("nguyen", "Nguyen", ("nguyen",),
              published=_paper((87.5, 4.07), (91.67, 0.0), source="DGSR paper, table of Nguyen")),
        Table("r", "R, rational functions", ("r",),
              published=_paper((51.66, 7.23), (43.33, 5.06), source="DGSR paper, table of R rationals")),
        Table("livermore", "Livermore", ("livermore",),
              published=_paper((71.36, 9.82), (73.63, 7.26), source="DGSR paper, table of Livermore")),
        Table("nguyen_c", "Nguyen with constants", ("nguyen_c",),
              published=_paper((100.0, 0.0), (100.0, 0.0),
                               source="DGSR paper, table of Nguyen with constants")),
        Table("strogatz", "Strogatz systems of SRBench", ("strogatz",), max_time=15.0),
        Table("srbench", "SRBench without noise", ("srbench_feynman", "strogatz"),
              seeds=1, max_time=15.0, note=_SRBENCH_NOTE,
              published=(Published("DGSR", 63.25, "DGSR paper, appendix SRBench Results"),
                         Published("AI Feynman", 52.65, "DGSR paper, appendix SRBench Results"))),
        Table("drawn_koza", "Equations without constants, drawn afresh", ("drawn:koza",),
              **_DRAWN_KOZA),
        Table("drawn_physics", "Equations with constants, drawn afresh", ("drawn:physics",), **_DRAWN),
        Table("drawn_laws", "Laws drawn afresh", ("drawn:laws",), **_DRAWN),
        Table("laws", "Laws of textbooks, 60 in no benchmark", ("laws",), seeds=1, max_time=15.0,
              settings=(Setting(), Setting(0.01)), note=_LAWS_NOTE),
        Table("laws_5s", "Laws of textbooks, 5 s", ("laws",), seeds=1, max_time=5.0, budget=10**9,
              settings=(Setting(), Setting(0.01), Setting(0.05)), note=_LAWS_NOTE),
        Table("drawn_laws_controls", "Laws drawn afresh, all controls", ("drawn:laws",), **_CONTROLS),
        Table("drawn_physics_controls", "Equations with constants, drawn afresh, all controls",
              ("drawn:physics",), **_CONTROLS),
        Table("drawn_laws_noise", "Laws drawn afresh, noise", ("drawn:laws",), **_NOISY),
        Table("drawn_physics_noise", "Equations with constants, drawn afresh, noise", ("drawn:physics",),
              **_NOISY),
        Table("feynman_additional", "Feynman, 32 more", ("feynman_additional",),
              published=_paper((67.81, 4.6, 318_042), (67.81, 3.0, 328_499),
                               source="DGSR paper, table of additional Feynman")),
        Table("synthetic_d12", "Synthetic, twelve variables", ("synthetic_d12",),
              published=_paper((37.86, 5.62, 271_302), (28.57, 0.0, 828_905), (0.0, 0.0),
                               source="DGSR paper, table of Synthetic d=12")),
        Table("feynman_d2_noise", "Feynman, two variables, noise", ("feynman_d2",),
              settings=tuple(Setting(noise, 200) for noise in (0.0, 0.001, 0.01, 0.02, 0.05, 0.1)),
              note="As in the paper there are ten times as many rows, 200. It shows its recovery, of three "
                   "seeds, in a picture without numbers."),
        Table("feynman_d2_few_rows", "Feynman, two variables, few rows with noise", ("feynman_d2",),
              note="The published percentages are sixtieths, so they are of six of the seven problems.",
              settings=tuple(Setting(0.001, rows) for rows in (2, 5, 10, 20)),
              published=tuple(Published(method, recovery, _FEW_ROWS, noise=0.001, rows=rows)
                              for rows, *both in ((2, 30.0, 21.66), (5, 76.66, 70.0), (10, 91.66, 66.66),
                                                  (20, 90.0, 83.33))
                              for method, recovery in zip(("DGSR", "NGGP"), both))),
        Table("extended_d2", "Extended synthetic, two variables", ("drawn:koza-d2",), **_EXTENDED,
              published=_paper((84.98, None, 448_430), (83.73, None, 460_585), source=_ADDITIONAL)),
        Table("extended_d5", "Extended synthetic, five variables", ("drawn:koza-d5",), **_EXTENDED,
              published=_paper((84.18, None, 527_879), (83.19, None, 582_542), source=_ADDITIONAL)),
        Table("ablations_d2", "Feynman, two variables, ablations", ("feynman_d2",), max_time=30.0,
              methods=_ABLATIONS,
              published=(Published("DGSR without evolution", 74.28, _WITHOUT_EVOLUTION, 8.75, 29_356),
                         Published("NGGP without evolution", 70.47, _WITHOUT_EVOLUTION, 7.58, 151_231))),
        Table("ablations_d5", "Feynman, five variables, ablations", ("feynman_d5",), max_time=30.0,
              methods=_ABLATIONS,
              note="The generator is trained by cross-entropy. That of the paper is trained on the NMSE "
                   "unless its name says otherwise.",
              published=tuple(Published(name, recovery, source) for name, recovery, source in (
                  ("DGSR", 67.5, _D5_ABLATIONS),
                  ("DGSR without encoder", 66.66, _D5_ABLATIONS),
                  ("DGSR without encoder and training", 60.41, _D5_ABLATIONS),
                  ("DGSR trained by cross-entropy", 62.5, _D5_ABLATIONS),
                  ("DGSR trained by cross-entropy, unrefined", 47.5,
                   "DGSR paper, table of cross-entropy without refinement"),
              ))),
        Table("srbench_noise", "SRBench with noise", ("srbench_feynman", "strogatz"), seeds=1,
              max_time=15.0, settings=tuple(map(Setting, (0.001, 0.01, 0.1))), methods=PAIRED_METHODS,
              note=f"{_SRBENCH_NOTE} {_NOISE_NOTE}"),
        Table("srbench_peers", "SRBench, 133 laws, beside peers", ("srbench_feynman", "strogatz"), seeds=1,
              max_time=15.0, budget=10**9, methods=PEER_METHODS, note=_PEERS_NOTE),
        Table("drawn_laws_longer", "Laws drawn afresh, 15 s", ("drawn:laws",), **_LONGER),
        Table("drawn_physics_longer", "Equations with constants, drawn afresh, 15 s", ("drawn:physics",),
              **_LONGER),
        Table("drawn_laws_peers", "Laws drawn afresh, beside peers", ("drawn:laws",), seeds=1, **_DRAWN,
              methods=PEER_METHODS, note=_PEERS_NOTE),
    )
}  # fmt: skip


def table_of(name: str) -> Table:
    """Return the table with a name; ValueError, with names that are close, if there is none."""
    if name not in TABLES:
        close = difflib.get_close_matches(name, TABLES, n=3) or list(TABLES)
        raise ValueError(
            f"table={name!r} is unknown; choose from {', '.join(close)} (dgsr bench --tables lists all)."
        )
    return TABLES[name]
