"""How long do fits take, by one state of the code or by several in turns?

    python benchmarks/fit_times.py KIND [--sources SRC ...] [--python PYTHON] [--turns K] [--out FILE.json]

The kinds are

- ``start-up``: a process that imports the estimator, fits 20,000 equations, predicts and writes a report, on
  a fresh installation (an empty folder for machine code) and on a warm cache, in the libraries `physics` and
  `koza`. "compiling" is the time of numba's events in that process; the time of the second process that
  compiles is in "processor" alone;
- ``small``: fits of 2,000 equations on small tables, as in a grid search or a cross-validation. This is
  little more than what surrounds the search: look-ups before it, and finishing the formulas after it;
- ``typical``: twenty fits with the defaults, of 10 to 1,000,000 rows and 1 to 100 columns, each in a process
  that compiled by another fit before: the seconds, and the largest memory of the process in GB. Beside them
  those of pyoperon with its defaults and one thread, where it can do the same;
- ``searches``: searches of 200,000 equations on a table that no short formula fits exactly, in both libraries
  and for each number of `--columns`, without what surrounds them.

To compare states of the code, give the folder `src` of a checkout of each. Every run is a process of its own,
and the states take turns after each, so that a machine whose speed varies slows all. Printed are the medians
for each state in seconds, and the median ratio of the last state to the first; the file has every run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dgsr.benchmarking.environment import environment

LIBRARIES = ("physics", "koza")
OURS = Path(__file__).parents[1] / "src"

START_UP = """
import json, resource, sys, tempfile, time
start = time.perf_counter()
from dgsr import DGSRRegressor
seconds = {"import": time.perf_counter() - start}

import numba.core.event as event

compiled, running = [], []

class Listener(event.Listener):
    def on_start(self, event):
        running.append(time.perf_counter())
    def on_end(self, event):
        duration = time.perf_counter() - running.pop()
        if not running:
            compiled.append(duration)

event.register("numba:compile", Listener())
import numpy as np
from dgsr.search import Search

evaluate, first = Search.evaluate, []

def timed(search, *programs):
    result = evaluate(search, *programs)
    # The small search that compiles has one column; the data below have three.
    if search.library.n_variables == 3 and not first:
        first.append(time.perf_counter() - begin)
    return result

Search.evaluate = timed
X = np.random.default_rng(0).uniform(0.5, 3.0, (40, 3))
y = X[:, 0] * np.exp(-X[:, 1]) + np.sin(X[:, 0] * X[:, 2] ** 2) / X[:, 1]
begin = time.perf_counter()
model = DGSRRegressor(library=sys.argv[1], random_state=0, max_evaluations=20_000).fit(X, y)
model.predict(X)
with tempfile.TemporaryDirectory() as folder:
    model.report(f"{folder}/fit.html", X, y)
seconds |= {"first evaluation": first[0], "compiling": sum(compiled)}
seconds["all"] = time.perf_counter() - start
usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds["processor"] = sum(one.ru_utime + one.ru_stime for one in usage)
print(json.dumps({name: [value] for name, value in seconds.items()}))
"""

SMALL = """
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

TYPICAL = """
import json, resource, sys, time, warnings
import numpy as np

warnings.simplefilter("ignore")
package, rows, columns, noise, given = sys.argv[1], *map(int, sys.argv[2:4]), float(sys.argv[4]), sys.argv[5]
random = np.random.default_rng(0)
X = random.uniform(1.0, 3.0, (rows, columns))
a, b, c = X[:, 0], X[:, columns // 2], X[:, -1]
y = 1.7 * a**2 * np.exp(-0.8 * b) + c
groups = random.integers(0, 10, rows)
if given == "groups":
    y = y * (1.0 + groups)
y = y + noise * y.std() * random.normal(size=rows)
if given == "outliers":
    y[::20] += 5.0 * y.std()
fitting = {}
if package == "dgsr":
    from dgsr import DGSRRegressor
    settings, small = {"random_state": 0}, {"max_evaluations": 2_000}
    settings |= {"units": {f"x{i + 1}": "m" for i in range(columns)}} if given == "units" else {}
    settings |= {"n_jobs": 2} if given == "two cores" else {}
    settings |= {"max_time": 10.0} if given == "10 s" else {}
    settings |= {"library": "koza"} if given == "koza" else {}
    fitting = {"groups": groups} if given == "groups" else {}
    fitting |= {"sample_weight": 1.0 + c} if given == "weights" else {}
    make = DGSRRegressor
else:
    from pyoperon.sklearn import SymbolicRegressor as make
    settings, small = {"random_state": 0, "n_threads": 1}, {"max_evaluations": 2_000}
    settings |= {"max_time": 10} if given == "10 s" else {}
warm = {name: values[:200] for name, values in fitting.items()}
make(**settings | small).fit(X[:200], y[:200], **warm)
start = time.perf_counter()
make(**settings).fit(X, y, **fitting)
seconds = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps({"seconds": [seconds], "memory in GB": [memory]}))
"""

#: Rows, columns, noise, and what else is given, of typical fits.
TYPICAL_FITS = (
    (10, 1, 0.05, ""), (30, 1, 0.05, ""), (100, 2, 0.0, ""), (100, 2, 0.02, ""), (100, 2, 0.02, "koza"),
    (300, 4, 0.02, ""), (300, 4, 0.02, "two cores"), (300, 4, 0.02, "10 s"), (300, 4, 0.02, "units"),
    (300, 4, 0.02, "groups"), (300, 4, 0.02, "weights"), (300, 4, 0.02, "outliers"), (1_000, 10, 0.0, ""),
    (1_000, 10, 0.02, ""), (1_000, 30, 0.02, ""), (1_000, 100, 0.02, ""), (10_000, 5, 0.02, ""),
    (100_000, 5, 0.02, ""), (1_000_000, 5, 0.0, ""), (1_000_000, 5, 0.02, ""),
)  # fmt: skip

SEARCH = """
import json, sys
import numpy as np
from dgsr import DGSRRegressor
rng = np.random.default_rng(0)
X = rng.uniform(0.3, 3.0, (60, int(sys.argv[2])))
y = X[:, 0] / (1.3 + X[:, 1] ** 1.7) + np.sin(2.1 * X[:, 0]) + 0.01 * rng.normal(size=60)
for budget in (1_000, 200_000):  # the first compiles, or loads what is compiled
    settings = {"max_evaluations": budget, "random_state": 0}
    try:
        model = DGSRRegressor(sys.argv[1], config={"tolerance": 0.0}, **settings)
    except TypeError:  # of sources that had more parameters
        model = DGSRRegressor(sys.argv[1], tolerance=0.0, **settings)
    model.fit(X, y)
print(json.dumps({"search": [model.history_[-1]["seconds"]]}))
"""

#: Seconds by what they are of; each has a list of runs.
Seconds = dict[str, list[float]]
#: A run of a process with the sources in a folder: the script, its arguments, and the folder of machine code.
Run = Callable[..., Seconds]


def run(sources: Path, python: str, script: str, *arguments: str, cache: str | None = None) -> Seconds:
    """Return what a script prints that runs with the sources of a state."""
    # Python keeps byte code, as it does for a user, also where the environment forbids it.
    settings = {**os.environ, "PYTHONPATH": str(sources.resolve()), "PYTHONDONTWRITEBYTECODE": ""}
    settings |= {"NUMBA_CACHE_DIR": cache} if cache else {}
    command = [python, "-W", "ignore", "-c", script, *arguments]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def start_ups(of_state: Run, columns: list[int]) -> Iterator[tuple[str, Seconds]]:
    """Yield a cold and three warm runs in each library, after a process that keeps the byte code."""
    of_state("from dgsr import DGSRRegressor; print('{}')")
    for library in LIBRARIES:
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", *["warm"] * 3):
                yield f"{library}, {state}", of_state(START_UP, library, cache=cache)


def small_fits(of_state: Run, columns: list[int]) -> Iterator[tuple[str, Seconds]]:
    yield "", of_state(SMALL)


def typical(of_state: Run, columns: list[int]) -> Iterator[tuple[str, Seconds]]:
    for rows, n_columns, noise, given in TYPICAL_FITS:
        name = ", ".join([f"{rows:,} x {n_columns}", f"noise {noise:g}", *filter(None, [given])])
        has_peer = given in ("", "10 s") and rows <= 10_000
        for package in ("dgsr", *(["pyoperon"] if has_peer else [])):
            yield f"{name}, {package}", of_state(TYPICAL, package, *map(str, (rows, n_columns, noise)), given)


def searches(of_state: Run, columns: list[int]) -> Iterator[tuple[str, Seconds]]:
    for library in LIBRARIES:
        for n_columns in columns:
            yield f"{library}, {n_columns} columns", of_state(SEARCH, library, str(n_columns))


#: The runs of each kind, and how many turns of all states it has by default.
KINDS = {
    "start-up": (start_ups, 1),
    "small": (small_fits, 4),
    "typical": (typical, 1),
    "searches": (searches, 10),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument(
        "--sources", nargs="+", type=Path, default=[OURS], help="the folder src of each state"
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter of their environment")
    parser.add_argument("--turns", type=int, help="runs of all states")
    parser.add_argument("--columns", type=int, nargs="+", default=[2], help="of the tables of searches")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    runs_of, turns = KINDS[arguments.kind]
    found: list[Seconds] = [{} for _ in arguments.sources]
    for _ in range(arguments.turns or turns):
        of_states = [partial(run, sources, arguments.python) for sources in arguments.sources]
        for runs in zip(*(runs_of(of_state, arguments.columns) for of_state in of_states), strict=True):
            for seconds, (name, own) in zip(found, runs, strict=True):
                for part, values in own.items():
                    seconds.setdefault(": ".join(filter(None, (name, part))), []).extend(values)
            if arguments.out is not None:  # after every run, since all of them may take half an hour
                write(arguments.out, arguments.kind, arguments.sources, found)
    for name in found[0]:
        runs = [seconds[name] for seconds in found]
        medians = "".join(f"{statistics.median(own):>10.3f}" for own in runs)
        ratios = [last / first for first, last in zip(runs[0], runs[-1], strict=True) if first > 0.0]
        ratio = f"{statistics.median(ratios):>8.2f} of the first" if len(runs) > 1 and ratios else ""
        print(f"{name:<44}{medians}{ratio}")


def write(out: Path, kind: str, sources: list[Path], found: list[Seconds]) -> None:
    """Write the runs so far to a file."""
    rows = [{"name": name, "seconds": [seconds[name] for seconds in found]} for name in found[0]]
    states = [each.resolve().parent.name for each in sources]
    result = {"kind": kind, "states": states, "environment": environment(), "rows": rows}
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
