"""Draw again every equation that a generator was trained on, and look for problems among them.

    python benchmarks/training_equations.py problems [GENERATOR ...] --out FILE.json
    python benchmarks/training_equations.py drawn GENERATOR SET ... --out FILE.json

The equations of a training follow from the seed and the settings in its card; drawing 30 million takes half
an hour. A run that was stopped goes on when it is started again.

``problems`` is decontamination: the problems of all sets should not be among the equations, and are listed
where they are. Each equation is compared with all problems, under every assignment of their variables to the
columns, at other points than those by which training leaves them out. Values equal to nine digits are a hit;
in libraries with fitted scale and offset these are ignored, and in libraries with constants the same skeleton
is a hit too, whatever the constants. Functions may agree where a part of them has saturated, as
x1 + tanh(x2**5) and x1 + 1 do beyond 1. Values are therefore compared again at points below 1, and equations
that differ there are listed and not counted as hits. A generator that is older than a set was trained without
holding it out, so that it may have hits there; they are counted apart. The program prints the hits, and how
many problems were compared.

``drawn`` says how much of what the network finds is memory. Drawn sets are drawn from the prior that a
generator is trained on, so that a short equation may have been in its training. Two equations are the same
here if they have one skeleton (`dgsr.kernels.canonical`) under some order of their columns: the constants are
ignored, and so are a scale and an offset where they are fitted. The sets are those of `network_alone.py`. The
file has, for every equation of the sets, how many of the training are the same.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import fields
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from network_alone import SETS
from scipy.spatial import cKDTree

from dgsr.benchmarking.drawn import draw_problems
from dgsr.data.population import Population
from dgsr.expressions import Expression
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.files.writing import write_atomically
from dgsr.generator.checkpoints import CARD, list_generators, load_generator
from dgsr.kernels.canonical import skeletons
from dgsr.pretraining import PretrainingConfig
from dgsr.pretraining.conditioning_gap import draw_validation_set
from dgsr.pretraining.decontamination import benchmark_decontamination, problem_skeletons, skeletons_of_orders
from dgsr.pretraining.prior import PRIOR_VERSION, Prior
from dgsr.pretraining.rewriting import rewriting
from dgsr.pretraining.stream import Stream
from dgsr.problems import list_sets, load_set

# Equations of each drawn set.
N_DRAWN = 200
# Points at which functions are compared, and the largest difference of two that are equal there.
N_POINTS, DIGITS = 16, 1e-9
# Functions whose values at the points below 1 differ by more than this are two functions.
APART = 1e-6
ELSEWHERE = "equal_between_1_and_3_only"
YOUNGER = "hits_of_sets_not_held_out"
# Fewest finite values of a problem that is compared; scale and offset alone can fit two.
LEAST = 4
_MOST_ASSIGNMENTS = 5040
# Sets that are younger than the cards that do not say what was held out.
LATER = ("laws",)


def fingerprints(values: np.ndarray, scaled: bool) -> np.ndarray:
    """Return rows of values as points that are close for equal functions; NaN where a value is not finite."""
    values = np.where(np.isfinite(values), values, np.nan)
    if scaled:
        first, spread = values[:, :1], values[:, 1:2] - values[:, :1]
        with np.errstate(over="ignore"):
            values = (values - first) / np.where(spread == 0.0, np.nan, spread)
    return np.arcsinh(values)


def problem_fingerprints(n_columns: int, points: np.ndarray, scaled: bool) -> tuple[np.ndarray, list[str]]:
    """Return the fingerprints of all problems under every assignment of their variables to the columns."""
    rows, names = [], []
    for problem in (problem for name in list_sets() for problem in load_set(name)):
        d = problem.n_variables
        if d > n_columns:
            continue
        among = n_columns if math.perm(n_columns, d) <= _MOST_ASSIGNMENTS else d
        orders = (
            permutations(range(among), d) if math.factorial(d) <= _MOST_ASSIGNMENTS else [tuple(range(d))]
        )
        for order in orders:
            with np.errstate(all="ignore"):
                rows.append(problem.target(points[list(order)].T))
            names.append(problem.name)
    return fingerprints(np.array(rows), scaled), names


def same_where_defined(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index pairs of rows that are equal wherever those of `theirs` are finite.

    Only rows that agree in the last of these values are compared; the first two may be 0 and 1 in every row.
    """
    defined = np.isfinite(theirs)
    last = theirs.shape[1] - 1 - defined[:, ::-1].argmax(axis=1)
    pairs = [(np.zeros(0, dtype=np.int64),) * 2]
    for column in np.unique(last).tolist():
        rows = np.flatnonzero(last == column)
        order = np.argsort(ours[:, column])  # NaN at the end
        values, wanted = ours[order, column], theirs[rows, column]
        low, high = np.searchsorted(values, wanted - DIGITS), np.searchsorted(values, wanted + DIGITS)
        n_near = high - low
        j = np.repeat(rows, n_near)
        within = np.arange(len(j)) - np.repeat(np.cumsum(n_near) - n_near, n_near)
        i = order[np.repeat(low, n_near) + within]
        is_same = ((np.abs(ours[i] - theirs[j]) < DIGITS) | ~defined[j]).all(axis=1)
        pairs.append((i[is_same], j[is_same]))
    i, j = map(np.concatenate, zip(*pairs))
    order = np.lexsort((j, i))
    return i[order], j[order]


def differ(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two rows are of different functions, which needs at least `LEAST` values that both have."""
    both = np.isfinite(ours) & np.isfinite(theirs)
    return both.sum() >= LEAST and bool(np.any(np.abs(ours[both] - theirs[both]) > APART))


class Training(NamedTuple):
    """The training of a generator, as its card tells it."""

    stream: Stream
    n_batches: int
    held_out_sets: list[str]


def training_of(name: str) -> Training:
    """Return the training of a generator, from which its equations can be drawn again.

    Raises
    ------
    ValueError
        If its equations were drawn by another version of the prior, so that its seed draws others now.
    """
    generator = load_generator(name)
    known = {info.name: info.path for info in list_generators()}
    card = json.loads((Path(known.get(name, name)) / CARD).read_text(encoding="utf-8"))
    version = card.get("prior_version", 1)
    if version != PRIOR_VERSION:
        raise ValueError(
            f"The equations of {name} were drawn by version {version} of the prior, and this is version "
            f"{PRIOR_VERSION}; check out a commit with that one, which docs/benchmarks.md names under "
            "Decontamination."
        )
    library, constraints = generator.library, Constraints(**card["constraints"])
    # A card has the seed beside the settings, and an older one settings that are no more.
    known_settings = {field.name for field in fields(PretrainingConfig)}
    settings = {k: v for k, v in card["training"].items() if k in known_settings}
    config, seed = PretrainingConfig(**settings), card["training"]["seed"]
    prior = Prior(**card["prior"])
    sets = card.get("held_out_sets", [name for name in list_sets() if name not in LATER])
    excluded = benchmark_decontamination(library, constraints, sets)
    n_held_out, n_columns = card["validation"]["n_equations"], min(library.n_variables, config.usual_columns)
    held_out = draw_validation_set(generator, prior, excluded, n_held_out, seed, n_columns)
    stream = Stream(library, constraints, prior, config, held_out.added_to(excluded), seed)
    return Training(stream, card["steps_done"] * config.n_groups, sets)


def check(name: str, part: Path) -> dict:
    """Return the equations of a generator's training that equal a problem.

    The state is written to the file `part` every thousand batches, from which the same call goes on.
    """
    stream, n_batches, sets = training_of(name)
    library, constraints = stream.library, stream.constraints
    scaled = constraints.grammar(library).linear_scaling
    rng = np.random.default_rng(1)
    points = rng.uniform(1.05, 2.95, (library.n_variables, N_POINTS))
    below = rng.uniform(0.05, 0.95, (library.n_variables, N_POINTS))
    theirs, names = problem_fingerprints(library.n_variables, points, scaled)
    theirs_below, _ = problem_fingerprints(library.n_variables, below, scaled)
    n_values = np.isfinite(theirs).sum(axis=1)
    whole = np.flatnonzero(n_values == N_POINTS)
    partial = np.flatnonzero((n_values >= LEAST) & (n_values < N_POINTS))
    tree = cKDTree(theirs[whole])
    known_skeletons = (
        np.array(sorted(problem_skeletons(library, scaled, sets)), dtype=np.uint64)
        if (library.has_constants)
        else np.empty(0, dtype=np.uint64)
    )
    state: dict = {"name": name, "batches": 0, "equations": 0, "hits": [], "met": []}
    if part.exists() and json.loads(part.read_text(encoding="utf-8"))["name"] == name:
        state = json.loads(part.read_text(encoding="utf-8"))
    hits, met = state["hits"], state["met"]
    for number in range(state["batches"], n_batches):
        programs = stream[number].drawn.programs
        ours = fingerprints(programs.predict(points.T), scaled)
        usable = np.flatnonzero(np.isfinite(ours).all(axis=1))
        near = dict(zip(usable, (whole[close] for close in tree.query_ball_point(ours[usable], DIGITS))))
        for i, j in zip(*same_where_defined(ours, theirs[partial])):
            near[i] = np.append(near.get(i, whole[:0]), partial[j])
        for i, close in near.items():
            if not len(close):
                continue
            (again,) = fingerprints(programs[i : i + 1].predict(below.T), scaled)
            same = [j for j in close if not differ(again, theirs_below[j])]
            row = {"problem": names[(same or close)[0]], "equation": str(programs[int(i)])}
            (hits if same else met).append(row)
        if len(known_skeletons):
            copies = programs.tokens.copy(), programs.lengths, programs.constants.copy()
            found = skeletons(*copies, library.table.arity, rewriting(library), scaled)
            hits += [
                {"problem": "a skeleton", "equation": str(programs[int(i)])}
                for i in np.flatnonzero(np.isin(found, known_skeletons))
            ]
        state["batches"], state["equations"] = number + 1, state["equations"] + len(programs)
        if state["batches"] % 1000 == 0:
            write_atomically(part, json.dumps(state).encode())
    part.unlink(missing_ok=True)
    compared = {names[i] for i in (*whole, *partial)}
    later = {problem.name for name in list_sets() if name not in sets for problem in load_set(name)}
    return {
        "generator": Path(name).name,
        "equations": state["equations"],
        "problems": len(compared),
        "not_compared": sorted(set(names) - compared),
        "hits": [hit for hit in hits if hit["problem"] not in later],
        YOUNGER: [hit for hit in hits if hit["problem"] in later],
        ELSEWHERE: [row for row in met if row["problem"] not in later],
    }


def look_for_problems(arguments: argparse.Namespace) -> None:
    """Write the hits of every generator, and print the first of them."""
    rows = []
    for name in arguments.names:
        start = time.perf_counter()
        rows.append(check(name, arguments.out.with_suffix(".part")))
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        row = rows[-1]
        print(
            f"{row['generator']}: {row['equations']:,} equations, {row['problems']} problems, "
            f"{len(row['hits'])} hits, {len(row[ELSEWHERE])} more that differ below 1, "
            f"{len(row[YOUNGER])} hits of sets that were not held out, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
        for hit in row["hits"][:20]:
            print("   ", hit["problem"], hit["equation"])


# Drawn sets ----------------------------------------------------------------------------------------


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


def count_drawn(arguments: argparse.Namespace) -> None:
    """Write how many equations of a training are the same as each of the drawn sets."""
    stream, n_batches, _ = training_of(arguments.generator)
    scaled = stream.constraints.grammar(stream.library).linear_scaling
    problem_of: dict[int, list[str]] = {}
    for name in arguments.sets:
        for problem in draw_problems(name, N_DRAWN, SETS[name]):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    problems = kinds.add_parser("problems")
    shipped = [info.name for info in list_generators()]
    problems.add_argument("names", nargs="*", metavar="GENERATOR", default=shipped)
    problems.set_defaults(run=look_for_problems)
    drawn = kinds.add_parser("drawn")
    drawn.add_argument("generator")
    drawn.add_argument("sets", nargs="+", metavar="SET", choices=SETS)
    drawn.set_defaults(run=count_drawn)
    for kind in (problems, drawn):
        kind.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
