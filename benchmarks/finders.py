"""What each finder is worth: laws that are found with all of them, and with one left out.

    python benchmarks/finders.py worth [--drawn 200] [--seed 9601] [--noise 0 0.01] [--max-evaluations 40000]
        [--sets drawn textbook measured] --out FILE.jsonl
    python benchmarks/finders.py worth --together NAME ... --out FILE.jsonl
    python benchmarks/finders.py worth --summary FILE.jsonl ...
    python benchmarks/finders.py symmetries [--seed 0] --out FILE.json

``symmetries`` measures which symmetries are found in tables of SRBench's laws (module ``_symmetries``). For
``worth`` the sets are laws of `drawn:laws` of a seed, the sixty laws of textbooks, and the measured tables of
`measured_laws.py` but those held out, to which no noise is added. A drawn or textbook law is found if the
chosen formula has its form (`dgsr.benchmarking.recovery.has_the_form`, on clean rows), a measured one if the
chosen formula follows it by the rule of that program.

Every table is fitted once with all finders, where the program notes which of them returned the law, and how
long each took. A fit with a finder left out is made only for tables whose law this finder returned, and which
was then chosen: of the others the finder can change nothing but the seconds and the random choices. Budgets
are evaluations, so the results do not depend on the machine. The summary has for each finder the number of
these fits, the laws that are lost in them and those that are won, with the interval of the share of all laws
that is lost (Wilson), and its median and mean milliseconds.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import measured_laws
import numpy as np
from _symmetries import measure

from dgsr import DGSRRegressor
from dgsr.benchmarking import read_records, wilson_interval
from dgsr.benchmarking.drawn import draw_problems
from dgsr.benchmarking.recording import record_all
from dgsr.benchmarking.recovery import has_the_form
from dgsr.constants.fitting import fit_constants
from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.finders.finder import Found
from dgsr.finders.terms import population_of
from dgsr.problems import load_set

_NOISE_SEED = 7
# What joins the names of finders that are left out together.
_TOGETHER = " + "
# What ends the name of a finder where it is asked again.
_AT_END = " at the end"
_FINDERS = "dgsr.finders."
#: The finders, and parts of them, by the attribute that has them: what stands there where they are left out.
WHOLE = {
    "two terms": "scheduler.two_terms",
    "common forms": "forms.CommonForms.__call__",
    "common forms at the end": "forms.CommonForms.whole",
    "quotients": "scheduler.quotients_of_polynomials",
    "fewer columns": "fewer_columns.finder.FewerColumns.__call__",
    "lines": "scheduler.linear_models",
    "longer": "longer.finder.Longer.__call__",
}
#: Parts of a finder: the finder, the attribute, and what it returns where it is left out.
PARTS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "products of powers": ("quotients", "linear.quotients.with_logarithms", lambda *_: []),
    "powers with a column in the exponent": ("quotients", "linear.quotients.with_powers", lambda *_: []),
    "functions in the place of columns": ("quotients", "linear.quotients.with_functions", lambda *_: []),
    "separation": ("fewer columns", "fewer_columns.finder.smallest_separation", lambda *_: None),
    "products of smooth functions": (
        "fewer columns",
        "fewer_columns.separation.fit_product",
        lambda *_: None,
    ),
    "sums": ("longer", "longer.finder.sums_of_terms", lambda programs, *_: programs[0][:0]),
    "extension": ("longer", "longer.finder.extended", lambda programs, *_: programs[:0]),
}
KEY = ("set", "law", "noise", "without")


@dataclass(frozen=True, eq=False)
class Table:
    """A table, and how a formula of it is judged."""

    set: str
    law: str
    X: Any
    y: np.ndarray
    is_law: Callable[[Expression], bool]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit with all finders (`without` is empty) or without one, for `record_all`."""

    table: Table
    noise: float
    without: str
    evaluations: int

    def identity(self) -> dict[str, Any]:
        table = self.table
        return {"set": table.set, "law": table.law, "noise": self.noise, "without": self.without}

    def record(self) -> dict[str, Any]:
        table = self.table
        y = table.y
        if self.noise:
            y = y + self.noise * np.std(y) * np.random.default_rng(_NOISE_SEED).normal(size=len(y))
        watch = _Watch(table)
        with ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left_out = self.without.split(_TOGETHER)
            for name, place in WHOLE.items():
                is_left_out = name in left_out or name.removesuffix(_AT_END) in left_out
                stack.enter_context(watch.around(name, place, is_left_out))
            for name, (_, place, nothing) in PARTS.items():
                if name in left_out:
                    stack.enter_context(patch(_FINDERS + place, nothing))
            model = DGSRRegressor(max_evaluations=self.evaluations, random_state=0)
            started = time.perf_counter()
            model.fit(table.X, y)
            seconds = time.perf_counter() - started
        return {
            **self.identity(),
            "found": table.is_law(model.expression_),
            "on_front": any(table.is_law(each.expression) for each in model.pareto_front_),
            "returned": sorted(name for name, is_law in watch.returned.items() if is_law),
            "milliseconds": {name: round(1e3 * spent, 1) for name, spent in watch.seconds.items()},
            "seconds": round(seconds, 2),
            "formula": str(model.expression_),
        }


@dataclass
class _Watch:
    """Notes how long finders take, and whether they return the law of a table of these columns."""

    table: Table
    returned: dict[str, bool] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def around(self, name: str, place: str, leave_out: bool) -> Any:
        module, _, attribute = (_FINDERS + place).rpartition(".")
        target = resolve_name(_FINDERS + place)

        def watched(*arguments: Any) -> Found:
            problem = arguments[-2]
            if leave_out:
                return Found(population_of(problem.library, []), are_complete=True)
            started = time.perf_counter()
            found = target(*arguments)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            if problem.library.n_variables == np.shape(self.table.X)[1] and not self.returned.get(name):
                self.returned[name] = self._is_returned(found, problem)
            return found

        return patch(f"{module}.{attribute}", watched)

    def _is_returned(self, found: Found, problem: Any) -> bool:
        programs: Population = found.programs[np.arange(len(found.programs))]
        if len(programs) == 0:
            return False
        with np.errstate(all="ignore"):
            fit = fit_constants(programs, problem.data, scaled=not found.are_complete, n_iterations=20)
        best = np.argsort(fit.nmse, kind="stable")[:12]
        for i in best[np.isfinite(fit.nmse[best])].tolist():
            forms = [programs[i]]
            if not found.are_complete:
                forms = _scaled(programs[i], float(fit.slope[i]), float(fit.intercept[i]))
            if any(map(self.table.is_law, forms)):
                return True
        return False


def _scaled(formula: Expression, slope: float, intercept: float) -> list[Expression]:
    """Return a formula as it is, with a scale, with an offset and with both: a law may need neither."""
    index, tokens, constants = formula.library.index, formula.tokens.tolist(), formula.constants.tolist()
    scaled = [index["mul"], index["const"], *tokens], [slope, *constants]
    forms = [(tokens, constants), scaled]
    forms += [([index["add"], *t, index["const"]], [*c, intercept]) for t, c in forms]
    return [Expression(formula.library, *form) for form in forms]


def drawn(n: int, seed: int) -> Iterator[Table]:
    """Yield tables of laws that are drawn."""
    for problem in draw_problems("laws", n, seed):
        sample, complexity = problem.sample(), problem.truth.complexity
        clean = sample.X_test, sample.y_test
        yield Table("drawn", problem.name, sample.X_train, sample.y_train, _has_form(*clean, complexity))


def textbook() -> Iterator[Table]:
    """Yield tables of the laws of textbooks."""
    for problem in load_set("laws"):
        sample = problem.sample(0)
        library = get_library("physics", sample.X_train.shape[1])
        truth = Expression.from_text(problem.expression, library, list(problem.variable_names))
        is_law = _has_form(sample.X_test, sample.y_test, truth.complexity)
        yield Table("textbook", problem.name, sample.X_train, sample.y_train, is_law)


def _has_form(X: np.ndarray, y: np.ndarray, complexity: int) -> Callable[[Expression], bool]:
    return lambda formula: has_the_form(formula, X, y, complexity)


def measured() -> Iterator[Table]:
    """Yield the measured tables but those held out."""
    for name, spec in json.loads(measured_laws.TABLES.read_text("utf-8")).items():
        if spec["set"] != "held out":
            table = measured_laws.load(spec)
            yield Table("measured", name, table.X.to_numpy(), table.y, _follows(spec, table))


def _follows(spec: dict[str, Any], table: measured_laws.Table) -> Callable[[Expression], bool]:
    judge = measured_laws.Judge(spec, table)
    longest = measured_laws.LONGEST * measured_laws.size(spec["form"])

    def follows(formula: Expression) -> bool:
        return measured_laws.size(str(formula)) <= longest and judge.follows(lambda X: formula(X.to_numpy()))

    return follows


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print what each finder returned, and what is lost and won without it."""
    whole = {(r["set"], r["law"], r["noise"]): r for r in records if not r["without"]}
    print(f"{'set':<10}{'noise':<7}laws chosen of fitted")
    for group in dict.fromkeys((key[0], key[2]) for key in whole):
        own = [r["found"] for (name, _, noise), r in whole.items() if (name, noise) == group]
        print(f"{group[0]:<10}{group[1]:<7}{sum(own)} of {len(own)}")
    print(f"\n{'left out':<38}{'fits':>6}{'lost':>6}{'won':>5}{'share lost, %':>22}{'ms, median, mean':>20}")
    for name in dict.fromkeys(r["without"] for r in records if r["without"]):
        pairs = [(whole[r["set"], r["law"], r["noise"]], r) for r in records if r["without"] == name]
        lost = sum(full["found"] and not r["found"] for full, r in pairs)
        won = sum(r["found"] and not full["found"] for full, r in pairs)
        low, high = wilson_interval(lost, len(whole))
        share = f"{100 * lost / len(whole):.1f} ({100 * low:.1f} to {100 * high:.1f})"
        spent = [r["milliseconds"][name] for r in whole.values() if name in r["milliseconds"]]
        times = f"{np.median(spent):.0f}, {np.mean(spent):.0f}" if spent else ""
        print(f"{name:<38}{len(pairs):>6}{lost:>6}{won:>5}{share:>22}{times:>20}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["worth", "symmetries"])
    parser.add_argument("--sets", nargs="+", default=["drawn", "textbook", "measured"])
    parser.add_argument("--drawn", type=int, default=200)
    parser.add_argument("--seed", type=int, help="by default 9601, and 0 for symmetries")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.01])
    parser.add_argument("--max-evaluations", type=int, default=40_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--together", nargs="+", default=[], help="finders and parts left out together")
    parser.add_argument("--summary", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.what == "symmetries":
        measure(arguments.seed or 0, arguments.out)
        return
    if arguments.summary:
        summary([record for path in arguments.summary for record in read_records(path)])
        return
    made = {
        "drawn": lambda: drawn(arguments.drawn, 9601 if arguments.seed is None else arguments.seed),
        "textbook": textbook,
        "measured": measured,
    }
    tables = [table for name in arguments.sets for table in made[name]()]
    levels = [(t, noise) for t in tables for noise in (arguments.noise if t.set != "measured" else [0.0])]
    runs = [Fit(table, noise, "", arguments.max_evaluations) for table, noise in levels]
    records = record_all(runs, KEY, 1, arguments.out, None)
    whole = {(r["set"], r["law"], r["noise"]): r for r in records if "error" not in r}
    others = []
    for table, noise in levels:
        record = whole.get((table.set, table.law, noise))
        names = [_TOGETHER.join(arguments.together)] if arguments.together else [*WHOLE, *PARTS]
        for name in names:
            finders = {PARTS[each][0] if each in PARTS else each for each in name.split(_TOGETHER)}
            if record is not None and record["found"] and finders.intersection(record["returned"]):
                others.append(Fit(table, noise, name, arguments.max_evaluations))
    summary([*records, *record_all([*runs, *others], KEY, 1, arguments.out, None)[len(records) :]])


if __name__ == "__main__":
    main()
