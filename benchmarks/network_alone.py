"""The network alone: how often a law is among its first samples, without exact search and without evolution.

    python benchmarks/network_alone.py [--problems N] [--method M ...] --out FILE.jsonl.gz
    python benchmarks/network_alone.py --summary FILE.jsonl.gz
    python benchmarks/network_alone.py --refinement --out FILE.jsonl

The equations are those of the drawn sets of `dgsr bench --table`, and others of two columns, without
constants. For each one the shipped generator of its library reads the rows to fit and writes 1,000
programs, whose constants are fitted to these rows; the decoder is not refined. A program is the law when
its NMSE on 1,000 fresh rows without noise is below the bound of the drawn sets
(`dgsr.benchmarking.recovery.is_found`). All samples are judged, so the figures say what is there to be
chosen, and not what would be. The methods are ``generator``, its controls (module ``controls``), and
``truth``, which is the law itself with its constants fitted and with a fitted scale and offset, as the
samples have: with noise it often misses the bound, because few rows do not tell so many numbers. The program
writes one line of JSON for each equation, noise and method, and goes on where the file ends.

With ``--refinement`` it measures what the training of the decoder during a search does (module
``_refinement``).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _refinement import WAYS
from _refinement import runs as refinements

from dgsr.benchmarking import read_records, wilson_interval
from dgsr.benchmarking.controls import CONTROLS
from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.benchmarking.recording import nmse, record_all
from dgsr.benchmarking.recovery import is_found
from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import get_library
from dgsr.generator.checkpoints import load_generator
from dgsr.generator.choice import find_generator
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.problems.problem import Sample

#: The sets, with the seed that each is drawn from.
SETS = {"koza-d2": 0xF4D3B3A7, "koza": 0xF4D3B3A7, "physics": 0xAA75311F, "laws": 0xAA75311F}
METHODS = ("generator", *CONTROLS, "truth")
NOISE = (0.0, 0.01)
N_SAMPLES = (1, 10, 100, 1000)
#: What identifies a record.
KEY = ("set", "draw_seed", "problem", "noise", "method")


@cache
def shipped(library: str) -> Generator:
    """Return the generator that a search in a library takes."""
    name = find_generator(get_library(library, 5))
    assert name is not None
    return load_generator(name)


@dataclass(frozen=True, eq=False)
class Sampling:
    """The samples for one equation, for `record_all`."""

    problem: DrawnProblem
    noise: float
    method: str

    def identity(self) -> dict[str, Any]:
        problem = self.problem
        return {
            "set": problem.set,
            "draw_seed": int(problem.seed),
            "problem": problem.name,
            "noise": self.noise,
            "method": self.method,
            "columns": problem.n_columns,
            "rows": problem.n_rows,
        }

    def record(self) -> dict[str, Any]:
        """Sample, fit and judge; return the number, from 1, of the first sample that is the law, or None."""
        data = self.problem.sample(self.noise)
        programs, first = self._programs(data)
        are_laws = [is_found(nmse(data.y_test, values), self.noise) for values in fitted(programs, data)]
        laws = first[np.array(are_laws)]
        number = int(laws.min()) + 1 if len(laws) else None
        return {**self.identity(), "distinct": len(first), "first": number}

    def _programs(self, data: Sample) -> tuple[Population, np.ndarray]:
        """Return the distinct samples, and the place of the first one that equals each."""
        if self.method == "truth":
            return Population.from_expressions([self.problem.truth]), np.zeros(1, dtype=np.int64)
        d = self.problem.n_columns
        generator = shipped(self.problem.truth.library.name).with_variables(d)
        if self.method in CONTROLS:
            generator = CONTROLS[self.method](generator, d, self.problem.number)
        encoding = generator.encode_dataset(data.X_train, data.y_train)
        state = new_state(self.problem.number)
        samples = generator.sample_encoded(encoding, max(N_SAMPLES), generator.grammar(d), state)
        _, first = np.unique(samples.tokens, axis=0, return_index=True)
        return generator.population(samples.tokens[first], samples.lengths[first]), first


def fitted(programs: Population, data: Sample) -> np.ndarray:
    """Return the values on the fresh rows, of shape (n_programs, n_rows); constants are fitted before."""
    if not programs.library.has_constants:
        return programs.predict(data.X_test)
    fit = fit_constants(programs, DataSet.from_arrays(data.X_train, data.y_train), second_start=True)
    with np.errstate(all="ignore"):
        return fit.slope[:, None] * programs.predict(data.X_test) + fit.intercept[:, None]


def summary(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the share of equations whose law is among the first samples, with Wilson's interval."""
    keys = ("set", "noise", "method")
    print(f"{'set':<16}{'noise':>6} {'method':<10}" + "".join(f"{n:>20,}" for n in N_SAMPLES))
    for key in dict.fromkeys(tuple(record[name] for name in keys) for record in records):
        group = [record for record in records if tuple(record[name] for name in keys) == key]
        line = f"{key[0]:<16}{key[1]:>6.2f} {key[2]:<10}"
        for n in N_SAMPLES:
            count = sum((record.get("first") or np.inf) <= n for record in group)
            low, high = (100 * bound for bound in wilson_interval(count, len(group)))
            line += f"{f'{count / len(group):.1%} ({low:.0f} to {high:.0f})':>20}"
        print(line)


def summary_of_refinement(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the mean change of the log-likelihood of missed equations, and the share of archive entries."""
    missed = [record for record in records if record["missed"]]
    print(
        f"{len(missed)} of {len(records)} equations are missed; mean change of their log-likelihood in nats"
    )
    for way in WAYS:
        changes, divergences = np.array([record["changes"][way] for record in missed]).T
        error = changes.std(ddof=1) / np.sqrt(len(changes))
        mean, rises = f"{changes.mean():>7.2f} +- {error:.2f}", f"{np.mean(changes > 0.0):.0%} rise"
        print(f"{way:<26}{mean}, {rises}, divergence {divergences.mean():.2f}")
    for name in ("refined", "pre-trained"):
        sampled, changed = np.sum([record["entries"][name] for record in missed], axis=0)
        print(f"{name}: {sampled} of {changed} changes of the archive by samples, {sampled / changed:.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200, help="equations of each set")
    parser.add_argument("--method", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--refinement", action="store_true", help="what training during a search does")
    arguments = parser.parse_args()
    if arguments.summary:
        summary(read_records(arguments.summary))
        return
    torch.set_num_threads(1)
    if arguments.refinement:
        key = ("set", "draw_seed", "problem", "noise")
        generators = {name: shipped(name) for name in ("koza", "physics")}
        summary_of_refinement(record_all(list(refinements(generators)), key, 1, arguments.out, None))
        return
    records = []
    for name, seed in SETS.items():
        problems = draw_problems(name, arguments.problems, seed)
        runs = [Sampling(*run) for run in itertools.product(problems, NOISE, arguments.method)]
        records += record_all(runs, KEY, 1, arguments.out, None)
    summary(records)


if __name__ == "__main__":
    main()
