"""How fast are whole searches of the present code, compared with another state of it?

Prints a table and writes JSON::

    python benchmarks/two_states.py --before CHECKOUT/src --columns 2 17 --out two_states.json

Every run is a process of its own, on a warm cache, that spends a budget on a data set which no short formula
fits exactly; both states run in turn. The ratios are those of the seconds of search of each pair of runs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

LIBRARIES = ("physics", "koza")
RUN = """
import sys
import numpy as np
from dgsr import DGSRRegressor
rng = np.random.default_rng(0)
X = rng.uniform(0.3, 3.0, (60, int(sys.argv[2])))
y = X[:, 0] / (1.3 + X[:, 1] ** 1.7) + np.sin(2.1 * X[:, 0]) + 0.01 * rng.normal(size=60)
for budget in (1_000, 200_000):  # the first compiles, or loads what is compiled
    model = DGSRRegressor(sys.argv[1], max_evaluations=budget, tolerance=0.0, random_state=0).fit(X, y)
print(model.history_[-1]["seconds"])
"""


def seconds(library: str, columns: int, sources: str) -> float:
    """Return the seconds of one search of a table of so many columns by the code in `sources`."""
    command = [sys.executable, "-W", "ignore", "-c", RUN, library, str(columns)]
    environment = {**os.environ, "PYTHONPATH": sources}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="the folder src of a checkout of the other state")
    parser.add_argument("--columns", type=int, nargs="+", default=[2], help="columns of the tables")
    parser.add_argument("--runs", type=int, default=10, help="pairs of runs for each library")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    states = {"before": arguments.before, "now": str(Path(__file__).parents[1] / "src")}
    rows = []
    for library, columns in itertools.product(LIBRARIES, arguments.columns):
        for sources in states.values():
            seconds(library, columns, sources)  # compiles
        runs = [
            {name: seconds(library, columns, path) for name, path in states.items()}
            for _ in range(arguments.runs)
        ]
        ratio = statistics.median(run["now"] / run["before"] for run in runs)
        medians = {name: round(statistics.median(run[name] for run in runs), 2) for name in states}
        rows.append({"library": library, "columns": columns, **medians, "median_ratio": ratio, "runs": runs})
        print(
            f"{library}, {columns} columns: {medians}, ratio {ratio:.3f} (median of {arguments.runs})",
            flush=True,
        )
    if arguments.out is not None:
        content = {"machine": platform.machine(), "python": platform.python_version(), "rows": rows}
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
