"""Few rows and noise: how often the law is chosen, by which rule, and how often it is on the front.

The laws are some of SRBench's Feynman set, chosen by the seed, and the first of the drawn set `drawn:laws` of
this seed. Each has tables of 6, 10, 20, 50 and 200 rows, and each table one noise of 0.1, 1, 5, 10 and 20% of
the standard deviation of y, in turn. Whether a formula has the form of the law is judged on 1,000 clean rows
(`dgsr.benchmarking.recovery.has_the_form`). The rules `aicc` (Akaike's criterion for few rows) and
`leave_one_out` choose from the same fronts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgsr import DGSRRegressor
from dgsr.benchmarking.drawn import draw_problems
from dgsr.benchmarking.recovery import has_the_form
from dgsr.expressions import Expression, get_library
from dgsr.pareto import ParetoFront
from dgsr.problems import load_set

ROWS = (6, 10, 20, 50, 200)
NOISE = (0.001, 0.01, 0.05, 0.1, 0.2)
_CLEAN = 1_000
#: What identifies a table in a file of records.
KEY = ("source", "law", "rows", "noise")


def laws(n: int, seed: int) -> Iterator[tuple[str, str, np.ndarray, np.ndarray, int]]:
    """Yield source, name, inputs, targets (200 rows to fit, then clean ones) and complexity of the laws."""
    problems = load_set("srbench_feynman")
    for i in np.sort(np.random.default_rng(seed).choice(len(problems), n, replace=False)):
        problem = problems[i]
        X = np.concatenate([problem.sample(seed).X_train[:200], problem.sample(seed).X_test[:_CLEAN]])
        library = get_library("physics", X.shape[1])
        truth = Expression.from_text(problem.expression, library, list(problem.variable_names))
        yield "srbench", problem.name, X, problem.target(X), truth.complexity
    for problem in draw_problems("laws", n, seed):
        order = np.random.default_rng(seed).permutation(len(problem.y))[: 200 + _CLEAN]
        yield "drawn", problem.name, problem.X[order], problem.y[order], problem.truth.complexity


def aicc(front: ParetoFront) -> int:
    """Return the candidate with the lowest Akaike criterion for few rows (Hurvich and Tsai, 1989)."""
    n, scores = front.n_samples, []
    for candidate in front:
        k = len(candidate.expression.constants) + 1
        correction = 2.0 * k * (k + 1) / (n - k - 1) if n > k + 1 else np.inf
        scores.append(n * np.log(max(candidate.loss, 1e-300)) + 2.0 * k + correction)
    return int(np.argmin(scores))


RULES: dict[str, Callable[[ParetoFront], int]] = {
    **{rule: lambda front, rule=rule: front.select(rule) for rule in ("mdl", "bic", "score", "accuracy")},
    "aicc": aicc,
    "leave_one_out": lambda front: int(np.argmin([candidate.leave_one_out for candidate in front])),
}


@dataclass(frozen=True, eq=False)
class Table:
    """A fit of one table, for `record_all`."""

    source: str
    law: str
    X: np.ndarray
    y: np.ndarray
    complexity: int
    rows: int
    noise: float
    evaluations: int

    def identity(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in KEY}

    def record(self) -> dict[str, Any]:
        """Fit; return which formulas of the front are the law, and what each rule chooses."""
        clean, n = (self.X[-_CLEAN:], self.y[-_CLEAN:]), self.rows
        noisy = self.y[:n] + self.noise * self.y[:200].std() * np.random.default_rng(n).normal(size=n)
        model = DGSRRegressor(max_evaluations=self.evaluations, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            front = model.fit(self.X[:n], noisy).pareto_front_
        forms = [has_the_form(candidate.expression, *clean, self.complexity) for candidate in front]
        choices = {rule: choose(front) for rule, choose in RULES.items()}
        with np.errstate(all="ignore"):
            errors = [np.mean((c.expression(clean[0]) - clean[1]) ** 2) / clean[1].var() for c in front]
        return {
            **self.identity(),
            "on_front": any(forms),
            "chosen": {rule: forms[i] for rule, i in choices.items()},
            "nmse": {
                rule: float(np.nan_to_num(errors[i], nan=1e9, posinf=1e9)) for rule, i in choices.items()
            },
            "formula": str(front[choices["mdl"]].expression),
            "loss": model.loss_,
        }


def runs(n_laws: int, seed: int, max_evaluations: int) -> list[Table]:
    """Return the fits of all tables of some laws of both sources."""
    return [
        Table(*law, n, NOISE[(i + j) % len(NOISE)], max_evaluations)
        for i, law in enumerate(laws(n_laws, seed))
        for j, n in enumerate(ROWS)
    ]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print the share of tables whose law is chosen by each rule, by rows and by noise."""
    records = [record for record in records if "error" not in record]
    print(f"{'':<14}{'tables':>7}{'front':>8}" + "".join(f"{rule:>15}" for rule in RULES))
    groups = {"all": records}
    for key in ("source", "rows", "noise"):
        for value in dict.fromkeys(r[key] for r in records):
            groups[f"{key} {value}"] = [r for r in records if r[key] == value]
    for name, group in groups.items():
        line = f"{name:<14}{len(group):>7}{100 * np.mean([r['on_front'] for r in group]):>7.1f}%"
        for rule in RULES:
            share = 100 * np.mean([r["chosen"][rule] for r in group])
            line += f"{share:>6.1f}%{np.median([r['nmse'][rule] for r in group]):>8.1e}"
        print(line)
