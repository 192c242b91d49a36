"""Laws as texts with ranges of their columns, and the runs of the benchmarks that are made of them."""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dgsr.benchmarking import METHODS
from dgsr.benchmarking.environment import environment
from dgsr.expressions.evaluation import evaluate
from dgsr.expressions.syntax import parse

NOISE = (0.0, 0.01, 0.05)
N_ROWS, N_TEST_ROWS, MOST_EQUATIONS = 120, 1_000, 10**9


class Law(NamedTuple):
    """A law, and where its columns are."""

    name: str
    text: str
    columns: dict[str, tuple[float, float]]

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the target of rows."""
        return np.broadcast_to(evaluate(parse(self.text), dict(zip(self.columns, X.T))), len(X))

    @property
    def n_numbers(self) -> int:
        """How many numbers it has that are no integers, and a scale."""
        return len(re.findall(r"\d\.\d", self.text)) + 1


def judged(
    regressor: Any, X: np.ndarray, y: np.ndarray, others: np.ndarray, truth: np.ndarray
) -> tuple[float, float]:
    """Fit a regressor, and return its seconds and the NMSE of its formula on other rows, without noise."""
    begun = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        regressor.fit(X, y)
        took = time.perf_counter() - begun
        return took, float(np.mean((regressor.predict(others) - truth) ** 2) / truth.var())


def run(law: Law, method: str, noise: float, seconds: float) -> dict:
    """Return the record of a run."""
    rng = np.random.default_rng(7)
    low, high = np.array(list(law.columns.values())).T
    X, others = (rng.uniform(low, high, (n, len(low))) for n in (N_ROWS, N_TEST_ROWS))
    y, truth = law.values(X), law.values(others)
    y = y + noise * y.std() * rng.normal(size=N_ROWS)
    regressor = METHODS[method](
        library="physics", max_evaluations=MOST_EQUATIONS, max_length=30, random_state=0, max_time=seconds
    )
    took, nmse = judged(regressor, X, y, others, truth)
    bound = max(1e-8, 3.0 * law.n_numbers / N_ROWS * noise**2)
    return {
        "law": law.name, "text": law.text, "method": method, "noise": noise, "max_time": seconds,
        "found": bool(nmse < bound), "nmse": nmse, "seconds": round(took, 2),
        "formula": str(regressor.expression_), "environment": environment(),
    }  # fmt: skip


def main(
    description: str, written: Sequence[Law], drawn: Callable[[int, int], Iterator[Law]], n_drawn: int
) -> None:
    """Run the laws that are written out and those that are drawn, and print how many are found."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--method", default="dgsr", choices=METHODS)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--n-drawn", type=int, default=n_drawn)
    parser.add_argument("--seed", type=int, default=0, help="of the drawn laws")
    parser.add_argument("--noise", type=float, nargs="+", default=NOISE)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    records = []
    if arguments.out.exists():
        records = [json.loads(line) for line in arguments.out.read_text("utf-8").splitlines()]
    made = {(r["text"], r["method"], r["noise"]) for r in records}
    for noise in arguments.noise:
        for law in (*written, *drawn(arguments.n_drawn, arguments.seed)):
            if (law.text, arguments.method, noise) in made:
                continue
            record = run(law, arguments.method, noise, arguments.seconds)
            records.append(record)
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(law.name, noise, record["found"], f"{record['nmse']:.1e}", record["formula"], flush=True)
        for kind, is_drawn in (("written", False), ("drawn", True)):
            chosen = [
                r for r in records
                if (r["method"], r["noise"]) == (arguments.method, noise)
                and r["law"].startswith("drawn") == is_drawn
            ]  # fmt: skip
            n_found = sum(r["found"] for r in chosen)
            seconds = sum(r["seconds"] for r in chosen)
            print(f"{arguments.method}, {kind}, noise {noise}: {n_found} of {len(chosen)}, {seconds:.0f} s")
