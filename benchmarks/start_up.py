"""How long does a fit take to its first evaluation, on a fresh installation and on a warm cache?

Prints a table and writes JSON::

    python benchmarks/start_up.py --out start_up.json

Every run is a process of its own that imports the estimator, fits, predicts and writes a report; a cold run
has an empty folder for machine code. "compiling" is the time of numba's events in that process; the time of
the second process that compiles is in "processor" alone. To measure another commit, give the sources of its
checkout by ``--sources`` and its environment's interpreter by ``--python``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARIES = ("physics", "koza")
WARM_RUNS = 3

RUN = """
import json, resource, sys, tempfile, time
start = time.perf_counter()
from dgsr import DGSRRegressor
seconds = {"import": time.perf_counter() - start}

import numba.core.event as event

compiled, running = {}, []

class Listener(event.Listener):
    def on_start(self, event):
        running.append(time.perf_counter())
    def on_end(self, event):
        duration = time.perf_counter() - running.pop()
        if not running:
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__.removeprefix('dgsr.')}.{function.__name__}"
            compiled[name] = compiled.get(name, 0.0) + duration

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
seconds |= {"first evaluation": first[0], "compiling": sum(compiled.values())}
seconds["all"] = time.perf_counter() - start
usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds["processor"] = sum(one.ru_utime + one.ru_stime for one in usage)
print(json.dumps({"seconds": seconds, "compiled": compiled}))
"""


def run(library: str, cache: str, python: str, sources: str) -> dict:
    """Fit in a process of its own; return its seconds and those of every compiled function."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": sources}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", RUN, library], env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", default=str(Path(__file__).parents[1] / "src"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows, compiled = [], {}
    names = ("import", "first evaluation", "compiling", "all", "processor")
    print(f"{'library':<10}{'cache':<7}" + "".join(f"{name:>18}" for name in names))
    for library in LIBRARIES:
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", *["warm"] * WARM_RUNS):
                result = run(library, cache, arguments.python, arguments.sources)
                seconds = {name: round(value, 2) for name, value in result["seconds"].items()}
                rows.append({"library": library, "cache": state, **seconds})
                print(
                    f"{library:<10}{state:<7}" + "".join(f"{seconds[name]:>18}" for name in names), flush=True
                )
                if state == "cold":
                    longest = sorted(result["compiled"].items(), key=lambda item: -item[1])
                    compiled[library] = {name: round(value, 2) for name, value in longest if value > 0.1}
    for library, functions in compiled.items():
        print(f"\n{library}: " + ", ".join(f"{name} {value}" for name, value in functions.items()))
    if arguments.out is not None:
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        content = {
            "machine": machine,
            "python": platform.python_version(),
            "runs": rows,
            "compiled": compiled,
        }
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
