"""How fast is the sampler, and how long does a whole search take with the network in the loop?

Prints a table and writes JSON::

    python benchmarks/search_speed.py --out search_speed.json

Everything runs in one thread. The sampler draws 25 and 500 programs from networks with random weights
(paper's sizes and ours) and from shipped generators, with compiled steps and with torch's in turn. The
search spends its whole budget on a data set that no short equation fits exactly.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

from dgsr import DGSRRegressor, list_generators, load_generator
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import get_library
from dgsr.generator import sampling
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state

N_PROGRAMS = (25, 500)
REPEATS = 9


def data_set(n_rows: int = 20) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.uniform(1.0, 5.0, (n_rows, 2))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 0]) + 0.1 * random.normal(size=n_rows)


def sampler(name: str, generator: Generator, n_programs: int) -> dict:
    """Return the median milliseconds for some programs, with the compiled steps and with torch's."""
    X, y = data_set()
    grammar = generator.grammar(2)
    encoding = generator.encode_dataset(X, y)
    row = {
        "generator": name,
        "parameters": generator.n_parameters(),
        "programs": n_programs,
    }
    compiled = sampling._draw_compiled
    seconds: dict[str, list[float]] = {"compiled": [], "torch": []}
    for repeat in range(REPEATS + 1):  # the first compiles
        for way, draw in (("compiled", compiled), ("torch", sampling._draw_with_torch)):
            sampling._draw_compiled = draw
            start = time.perf_counter()
            samples = generator.sample_encoded(encoding, n_programs, grammar, new_state(repeat))
            seconds[way].append(time.perf_counter() - start)
    sampling._draw_compiled = compiled
    milliseconds = {way: 1e3 * float(np.median(times[1:])) for way, times in seconds.items()}
    return row | {"mean_length": float(np.mean(samples.lengths)), "milliseconds": milliseconds}


def search(library: str, name: str | None, budget: int) -> dict:
    """Return the seconds of a whole budget, which `tolerance=0` lets the search spend."""
    X, y = data_set()
    start = time.perf_counter()
    regressor = DGSRRegressor(library, name, max_evaluations=budget, tolerance=0.0, random_state=0)
    regressor.fit(X, y)
    return {
        "library": library,
        "generator": regressor.generator_,
        "evaluations": regressor.n_evaluations_,
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=int, default=2_000_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    library, constraints = get_library("koza", 2), Constraints()
    networks = {
        f"{name}, random weights": Generator.untrained(library, config, constraints, 0)
        for name, config in CONFIGS.items()
    }
    for info in list_generators():
        if info.card["library"]["name"] == library.name:
            networks[info.name] = load_generator(info.name)
    samplers = [sampler(name, network, n) for name, network in networks.items() for n in N_PROGRAMS]
    print("sampler                parameters  programs  mean length  compiled, ms  torch, ms  ratio")
    for row in samplers:
        ours, theirs = row["milliseconds"]["compiled"], row["milliseconds"]["torch"]
        print(
            f"{row['generator']:<22} {row['parameters']:>10,}  {row['programs']:>8}"
            f"  {row['mean_length']:>11.1f}  {ours:>12.1f}  {theirs:>9.1f}  {theirs / ours:>5.1f}"
        )
    searches = []
    for name in ("koza", "physics"):
        search(name, "auto", 20_000)  # compiles what is not yet compiled
        searches += [search(name, generator, arguments.budget) for generator in ("auto", "untrained", None)]
    print("\nlibrary   generator     evaluations  seconds")
    for row in searches:
        print(
            f"{row['library']:<8}  {row['generator']:<12}  {row['evaluations']:>11,}  {row['seconds']:>7.1f}"
        )
    if arguments.out:
        result = {
            "machine": platform.machine(),
            "torch": torch.__version__,
            "sampler": samplers,
            "search": searches,
        }
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
