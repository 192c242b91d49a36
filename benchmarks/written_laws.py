"""Laws that are written out, and others that are drawn alike: how many of them a method finds.

    python benchmarks/written_laws.py SET [--method dgsr] [--max-time 5] [--noise 0 0.01 0.05]
        [--drawn K] [--seed 0] [--outline] [--max-evaluations 1e5] --out FILE.jsonl
    python benchmarks/written_laws.py --summary FILE.jsonl

The sets, whose laws are in `_laws`, are

- ``separable``: products and sums of functions of different columns, 16 written and 40 drawn;
- ``rational``: quotients of polynomials, or a root or an exponential of one, 30 written and 60 drawn;
- ``growth``: laws with a column in an exponent, 44 written;
- ``outlined``: laws of which a person knows the outline, 4 written and 6 drawn, which are searched for with
  the outline as the `form` of the fit, by ``--outline``, or without. Where their seconds are compared on a
  busy machine, ``--max-evaluations`` limits a fit, and the seconds are those of the processor.

Every law has 120 rows, uniform in the columns, with noise of 0, 1 and 5% of the standard deviation of y by
default. A law is found if the NMSE of the formula on 1,000 other rows without noise is below 1e-8, or below
three times p/n of the squared noise if that is more, which is what least squares leaves in expectation of the
law itself with its p numbers fitted to n rows, times three. The methods are those of `dgsr bench`. The file
has a line for each run, and the program goes on where it ends. Printed are the laws that are found of those
written and of those drawn, by method and noise, and the seconds of all runs.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _laws import growth, outlined, rational, separable
from _laws.law import Law

from dgsr.benchmarking import METHODS, read_records
from dgsr.benchmarking.fits import timed_fit, warm_up
from dgsr.benchmarking.recording import record_all
from dgsr.problems import Sample

#: The written laws of each set, the function that draws others, and how many of these there are.
SETS = {
    "separable": (separable.WRITTEN, separable.drawn, 40),
    "rational": (rational.WRITTEN, rational.drawn, 60),
    "growth": (growth.WRITTEN, None, 0),
    "outlined": (outlined.WRITTEN, outlined.drawn, 6),
}
NOISE = (0.0, 0.01, 0.05)
N_ROWS, N_TEST_ROWS, MOST_EQUATIONS = 120, 1_000, 10**9
#: What identifies a run in a file of records.
KEY = ("text", "method", "noise", "outline", "max_evaluations")


class Fit(NamedTuple):
    """A fit of one law, for `record_all`."""

    law: Law
    method: str
    noise: float
    max_time: float
    with_outline: bool = False
    max_evaluations: int = MOST_EQUATIONS

    def identity(self) -> dict[str, Any]:
        named = {"law": self.law.name, "text": self.law.text, "method": self.method}
        limits: dict[str, Any] = {"noise": self.noise, "max_time": self.max_time}
        if self.max_evaluations < MOST_EQUATIONS:
            limits["max_evaluations"] = self.max_evaluations
        return {**named, **limits, **({"outline": self.law.outline} if self.with_outline else {})}

    def record(self) -> dict[str, Any]:
        """Fit rows with noise, and judge the formula by others without."""
        rng = np.random.default_rng(7)
        low, high = np.array(list(self.law.columns.values())).T
        X, others = (rng.uniform(low, high, (n, len(low))) for n in (N_ROWS, N_TEST_ROWS))
        y, truth = self.law.values(X), self.law.values(others)
        y = y + self.noise * y.std() * rng.normal(size=N_ROWS)
        settings = {"max_length": 30, "random_state": 0, "max_time": self.max_time}
        fit = self.method, self._regressor, Sample(X, y, others, truth)
        warm_up(self.method, "physics", self.max_evaluations, partial(self._regressor, **settings))
        started = time.process_time()
        _, entries = timed_fit(*fit, "physics", self.max_evaluations, **settings)
        bound, nmse = max(1e-8, 3.0 * self.law.n_numbers / N_ROWS * self.noise**2), entries["test_nmse"]
        judgement = {"found": nmse is not None and nmse < bound, "nmse": nmse}
        seconds = {"seconds": round(entries["seconds"], 2)}
        if self.max_evaluations < MOST_EQUATIONS:
            seconds = {"seconds": round(time.process_time() - started, 2)}
            judgement |= {"evaluations": entries["evaluations"], "stop_reason": entries["stop_reason"]}
        return {**self.identity(), **judgement, **seconds, "formula": entries["formula"]}

    def _regressor(self, max_evaluations: int, library: str = "physics", **parameters: Any) -> Any:
        """Return an unfitted regressor; the small fit before the timed one has other columns, and no form."""
        regressor = METHODS[self.method](library=library, max_evaluations=max_evaluations, **parameters)
        if self.with_outline and max_evaluations == self.max_evaluations:
            names = {name: f"x{i + 1}" for i, name in enumerate(self.law.columns)}
            form = re.sub(r"\b\w+\b", lambda match: names.get(match[0], match[0]), self.law.outline)
            regressor.set_params(form=form)
        return regressor


def laws_of(name: str, n_drawn: int | None, seed: int) -> Iterator[Law]:
    """Yield the laws of a set, those that are written out first."""
    written, drawn, usual = SETS[name]
    yield from written
    if drawn is not None:
        yield from drawn(usual if n_drawn is None else n_drawn, seed)


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print how many laws are found, by method, noise, and whether they are written or drawn."""
    groups: dict[tuple[str, float, str], list[dict[str, Any]]] = {}
    for record in records:
        kind = "drawn" if record["law"].startswith("drawn") else "written"
        kind += ", with the outline" if record.get("outline") else ""
        kind += f", {record['max_evaluations']} equations" if "max_evaluations" in record else ""
        groups.setdefault((record["method"], record["noise"], kind), []).append(record)
    for (method, noise, kind), own in groups.items():
        n_found = sum(record.get("found", False) for record in own)
        seconds = sum(record.get("seconds", 0.0) for record in own)
        print(f"{method}, noise {noise}, {kind}: {n_found} of {len(own)}, {seconds:.0f} s")


def _print(record: dict[str, Any]) -> None:
    result = record.get("error") or f"{'found' if record['found'] else 'missed'}: {record['formula']}"
    print(record["law"], record["noise"], result, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", nargs="?", choices=SETS, default="separable")
    parser.add_argument("--method", default="dgsr", choices=METHODS)
    parser.add_argument("--max-time", type=float, default=5.0, help="seconds of search")
    parser.add_argument("--drawn", type=int, help="number of the drawn laws")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn laws")
    parser.add_argument("--noise", type=float, nargs="+", default=NOISE)
    parser.add_argument("--outline", action="store_true", help="search with the outline of each law")
    parser.add_argument("--max-evaluations", type=float, default=MOST_EQUATIONS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args()
    if arguments.summary:
        summary(read_records(arguments.summary))
        return
    warnings.simplefilter("ignore")
    limit = int(arguments.max_evaluations)
    runs = [
        Fit(law, arguments.method, noise, arguments.max_time, arguments.outline, limit)
        for noise in arguments.noise
        for law in laws_of(arguments.set, arguments.drawn, arguments.seed)
    ]
    summary(record_all(runs, KEY, 1, arguments.out, _print))


if __name__ == "__main__":
    main()
