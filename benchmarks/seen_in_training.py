"""Draw again every equation a generator was trained on, and count those of the drawn sets among them.

    python benchmarks/seen_in_training.py GENERATOR SET ... --out FILE.json

It takes half an hour for 30 million equations.

Drawn sets are drawn from the prior that a generator is trained on, so that a short equation may have been in
its training. Two equations are the same here if they have one skeleton (`dgsr.kernels.canonical`) under some
order of their columns: the constants are ignored, and so are a scale and an offset where they are fitted.
The sets are those of `benchmarks/network_alone.py`. The file has, for every problem, how many equations of
the training are the same. It is written every hundred batches, and the program goes on where it ends.
"""

from __future__ import annotations

import argparse
import json
from itertools import permutations
from pathlib import Path

import numpy as np
from network_alone import SETS
from unseen_problems import training_of

from dgsr.benchmarking.drawn import draw_problems
from dgsr.benchmarking.published import table_of
from dgsr.expressions import Expression
from dgsr.expressions.library import Library
from dgsr.files.writing import write_atomically
from dgsr.kernels.canonical import skeletons
from dgsr.population import Population
from dgsr.pretraining.decontamination import skeletons_of_orders
from dgsr.pretraining.rewriting import rewriting

N_PROBLEMS = 200


def in_first_columns(tokens: np.ndarray, library: Library) -> np.ndarray:
    """Return programs (n, length) with the columns that each has renamed to the first ones, in order."""
    first = library.first_variable
    is_column = tokens >= first
    used = np.zeros((len(tokens), library.n_variables), dtype=np.int64)
    rows, places = np.nonzero(is_column)
    used[rows, tokens[rows, places] - first] = 1
    renamed = tokens.copy()
    renamed[rows, places] = first + (used.cumsum(axis=1) - 1)[rows, tokens[rows, places] - first]
    return renamed


def skeletons_of(programs: Population, scaled: bool) -> np.ndarray:
    """Return the hashes of the skeletons of programs over their first columns, shape (n,)."""
    library = programs.library
    tokens = in_first_columns(programs.tokens, library)
    rules = library.table.arity, rewriting(library)
    return skeletons(tokens, programs.lengths.copy(), programs.constants.copy(), *rules, scaled)


def skeletons_in_any_order(truth: Expression, scaled: bool) -> set[int]:
    """Return the hashes of the skeletons of an equation over its first columns, in any order of these."""
    library, first = truth.library, truth.library.first_variable
    (tokens,) = in_first_columns(truth.tokens[None].astype(np.int64), library)
    n_columns = len(np.unique(tokens[tokens >= first]))
    orders = np.array(list(permutations(range(n_columns))), dtype=np.int64)
    return skeletons_of_orders(tokens, truth.constants, orders, library, scaled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator")
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    stream, n_batches, _ = training_of(arguments.generator)
    scaled = stream.constraints.grammar(stream.library).linear_scaling
    problem_of: dict[int, list[str]] = {}
    for name in arguments.sets:
        for problem in draw_problems(name, N_PROBLEMS, table_of(SETS[name]).draw_seed):
            for value in skeletons_in_any_order(problem.truth, scaled):
                problem_of.setdefault(value, []).append(problem.name)
    known = np.array(sorted(problem_of), dtype=np.uint64)
    counts = {name: 0 for names in problem_of.values() for name in names}
    row = {"generator": Path(arguments.generator).name, "batches": 0, "equations": 0, "counts": counts}
    if arguments.out.exists():
        row = json.loads(arguments.out.read_text(encoding="utf-8"))
        if row["counts"].keys() != counts.keys():
            raise SystemExit(f"{arguments.out} is of other sets; choose another file.")
    for number in range(row["batches"], n_batches):
        programs = stream[number].drawn.programs
        found = skeletons_of(programs, scaled)
        for value in found[np.isin(found, known)].tolist():
            for name in problem_of[value]:
                row["counts"][name] += 1
        row["batches"], row["equations"] = number + 1, row["equations"] + len(programs)
        if row["batches"] % 100 == 0 or row["batches"] == n_batches:
            write_atomically(arguments.out, (json.dumps(row, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
