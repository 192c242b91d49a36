"""How long does a fit of a small table take, as in a grid search or a cross-validation?

Prints the median seconds of fits of 2,000 equations, which is little more than what surrounds the search:
look-ups before it, and finishing the formulas after it. To compare two states of the code, give the sources
of both; their processes take turns, so that a machine whose speed varies slows both::

    python benchmarks/small_fits.py --sources ../before/src src
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

TURNS = 4

RUN = """
import json, time, warnings
import numpy as np
from dgsr import DGSRRegressor

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X, normal = random.uniform(1.0, 3.0, size=(300, 4)), random.normal(size=300)
power, sine = X[:, 0] ** 2 * np.exp(-X[:, 1]), np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
quotient = X[:, 0] * X[:, 1] / (X[:, 2] + X[:, 3])
tables = {
    "40 rows, 2 columns, 5% noise": (X[:40, :2], power[:40] + 0.05 * power.std() * normal[:40]),
    "60 rows, 3 columns, 5% noise": (X[:60, :3], sine[:60] + 0.05 * sine.std() * normal[:60]),
    "300 rows, 4 columns, 1% noise": (X, quotient + 0.01 * quotient.std() * normal),
    "300 rows, 4 columns, exact": (X, quotient),
}
seconds = {}
for name, (rows, targets) in tables.items():
    for turn in range(4):  # the first one loads and compiles
        start = time.perf_counter()
        DGSRRegressor(max_evaluations=2_000, random_state=0).fit(rows, targets)
        seconds.setdefault(name, []).append(time.perf_counter() - start)
print(json.dumps({name: of_turns[1:] for name, of_turns in seconds.items()}))
"""


def run(sources: Path) -> dict[str, list[float]]:
    """Return the seconds of fits by table, from a process with the sources of one state."""
    environment = {**os.environ, "PYTHONPATH": str(sources.resolve())}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", nargs="+", type=Path, default=[Path(__file__).parents[1] / "src"])
    states = parser.parse_args().sources
    found: list[dict[str, list[float]]] = [{} for _ in states]
    for _ in range(TURNS):
        for seconds, sources in zip(found, states, strict=True):
            for table, of_turns in run(sources).items():
                seconds.setdefault(table, []).extend(of_turns)
    for table in found[0]:
        medians = [statistics.median(seconds[table]) for seconds in found]
        columns = "".join(f"{median:>9.3f} s" for median in medians)
        ratio = "" if len(medians) == 1 else f"{medians[-1] / medians[0]:>8.2f} of the first"
        print(f"{table:<30}{columns}{ratio}")


if __name__ == "__main__":
    main()
