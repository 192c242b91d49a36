"""Tables with noise: how often the law is found or chosen with few rows, outliers or weights.

    python benchmarks/noisy_tables.py KIND [--laws K] [--seed N] [--max-evaluations M] [--max-time S]
        [--methods NAME ...] --out FILE.jsonl
    python benchmarks/noisy_tables.py KIND --summary FILE.jsonl

The kinds, of which each is a module of `_noise` that says more, are

- ``few-rows``: tables of 6 to 200 rows with noise of 0.1 to 20%: how often the law is on the front, and how
  often each of six rules chooses it from there;
- ``outliers``: a few wrong rows in a table of 100: whether the law is found, and the wrong rows are left out;
- ``weights``: weights that are precisions or shares: whether the form of the law is chosen;
- ``srbench``: laws of SRBench's Feynman set, chosen by the seed, with noise of 0, 0.1, 1 and 10% of the root
  mean square of y: whether they are recovered;
- ``rates``: systems of differential equations from noisy time series: whether their form is chosen;
- ``smoothers``: the errors of the rates of change of these series, by smoothers of scipy and scikit-learn;
- ``told-forms``: the control of drawn sets that is told the form of the equation: how much there is to find;
- ``told-rules``: ten measured tables, with and without bounds, slopes and values that are known: the error
  beyond the rows.

The program writes one line of JSON for each run, goes on where the file ends, and prints what is in the file.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _noise import few_rows, outliers, rates, smoothers, told_forms, told_rules, weights

from dgsr.benchmarking import read_records, run_set
from dgsr.benchmarking.recording import Run, record_all
from dgsr.benchmarking.runner import UNBOUNDED
from dgsr.cli.bench import print_runs
from dgsr.problems import load_set

Records = Sequence[dict[str, Any]]

SRBENCH_NOISE = (0.0, 0.001, 0.01, 0.1)


class Kind(NamedTuple):
    """What a kind of noise measures, and with which settings by default."""

    records: Callable[[argparse.Namespace], Records]
    summary: Callable[[Records], None]
    defaults: dict[str, Any]


def recorded(runs: Sequence[Run], key: Sequence[str], out: Path | None) -> Records:
    """Make the runs that a file does not have, and print each."""

    def show(record: dict[str, Any]) -> None:
        print(*(record[entry] for entry in key), record.get("error") or record.get("formula", ""), flush=True)

    return record_all(runs, key, 1, out, show)


def of_srbench(arguments: argparse.Namespace) -> Records:
    """Return the runs on some laws of SRBench, at one noise level after the other."""
    names = [problem.name for problem in load_set("srbench_feynman")]
    chosen = sorted(
        np.random.default_rng(arguments.seed).choice(names, arguments.laws, replace=False).tolist()
    )
    options = {method: {"max_time": arguments.max_time} for method in arguments.methods}
    shared = {"seeds": 1, "budget": UNBOUNDED, "out": arguments.out, "options": options}
    return [
        record
        for noise in SRBENCH_NOISE
        for record in run_set("srbench_feynman", chosen, arguments.methods, noise=noise, **shared)
    ]


KINDS = {
    "few-rows": Kind(
        lambda a: recorded(few_rows.runs(a.laws, a.seed, a.max_evaluations), few_rows.KEY, a.out),
        few_rows.summary,
        {"laws": 24, "seed": 1, "max_evaluations": 100_000},
    ),
    "outliers": Kind(
        lambda a: recorded(outliers.runs(a.laws, a.seed, a.max_time, a.methods), outliers.KEY, a.out),
        outliers.summary,
        {"laws": 30, "seed": 20261127, "max_time": 3.0, "methods": ["dgsr:auto", "dgsr:squared"]},
    ),
    "weights": Kind(
        lambda a: recorded(weights.runs(a.laws, a.seed, a.max_evaluations), weights.KEY, a.out),
        weights.summary,
        {"laws": 30, "seed": 20261128, "max_evaluations": 20_000},
    ),
    "srbench": Kind(
        of_srbench,
        print_runs,
        {"laws": 20, "seed": 20261121, "max_time": 15.0, "methods": ["dgsr"]},
    ),
    "rates": Kind(
        lambda a: recorded(rates.runs(a.noise, a.seed, a.max_time), rates.KEY, a.out),
        rates.summary,
        {"noise": 0.01, "seed": 20261201, "max_time": 10.0},
    ),
    "smoothers": Kind(
        lambda a: recorded(smoothers.runs(a.seed), smoothers.KEY, a.out),
        smoothers.summary,
        {"seed": 20261129},
    ),
    "told-forms": Kind(
        lambda a: recorded(told_forms.runs(a.laws, a.seed), told_forms.KEY, a.out),
        told_forms.summary,
        {"laws": 200, "seed": 0xAF58F7E9},
    ),
    "told-rules": Kind(
        lambda a: recorded(told_rules.runs(a.laws, a.seed, a.max_evaluations), told_rules.KEY, a.out),
        told_rules.summary,
        {"laws": 10, "seed": 20261129, "max_evaluations": 50_000},
    ),
}


_HELP = {
    "laws": "number of laws, or of equations of each set",
    "seed": "that the laws are drawn or chosen by",
    "max_evaluations": "most equations of a fit",
    "max_time": "seconds of search",
    "noise": "standard deviation of the noise, in those of the states",
    "methods": "of dgsr bench, of outliers with a loss behind a colon",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, kind in KINDS.items():
        own = kinds.add_parser(name, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        for option, value in kind.defaults.items():
            several = {"nargs": "+"} if isinstance(value, list) else {"type": type(value)}
            own.add_argument(f"--{option.replace('_', '-')}", default=value, help=_HELP[option], **several)
        own.add_argument("--out", type=Path, help="file of the records")
        own.add_argument("--summary", type=Path, help="file of records to print the summary of")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    kind = KINDS[arguments.kind]
    kind.summary(read_records(arguments.summary) if arguments.summary else kind.records(arguments))


if __name__ == "__main__":
    main()
