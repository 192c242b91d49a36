"""Fits beside other processes and without a home, and what fits leave behind in their process."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from faults import Faults

TWO_AT_ONCE = """
import numpy as np
from dgsr import DGSRRegressor
X = np.random.default_rng(0).uniform(0.5, 2.0, (30, 2))
y = X[:, 0] / X[:, 1] + 0.01 * np.sin(9 * X[:, 0])
model = DGSRRegressor(max_evaluations=2_000, random_state=0).fit(X, y)
print(model.expression_)
"""


def together(n: int, **environment: str) -> list[subprocess.CompletedProcess]:
    """Run a small fit in some processes at once."""
    command = [sys.executable, "-W", "default", "-c", TWO_AT_ONCE]

    def run(_):
        everything = os.environ | environment
        return subprocess.run(
            command, env=everything, capture_output=True, text=True, timeout=600, check=False
        )

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


def surroundings(seed: int, faults: Faults) -> list[str]:
    """Fit beside other processes, without a home, and look at what a fit leaves behind in its process."""
    from dgsr import DGSRRegressor

    said = []
    with tempfile.TemporaryDirectory() as folder:
        ends = together(2, NUMBA_CACHE_DIR=folder)
        if len({end.stdout for end in ends}) != 1 or any(end.returncode for end in ends):
            faults.add(f"two that compile at once: {ends}")
        said.append(f"two processes that compile at once: {[end.stdout.strip() for end in ends]}")
    Path(no_home := tempfile.mktemp()).write_text("a file, in which no folder can be made", encoding="utf-8")
    without = {"HOME": no_home, "XDG_CACHE_HOME": no_home, "NUMBA_CACHE_DIR": no_home}
    (end,) = together(1, **without)
    if end.returncode or "Traceback" in end.stderr:
        faults.add(f"without a home: {end}")
    said.append(f"without a home: {end.stdout.strip()}, {'warned' if 'Warning' in end.stderr else 'silent'}")

    import torch

    X = np.random.default_rng(seed).uniform(0.5, 2.0, (40, 2))
    y = X[:, 0] / X[:, 1] + 0.1 * np.sin(9 * X[:, 0])

    def one_fit(number: int) -> None:
        DGSRRegressor(max_evaluations=3_000, random_state=number).fit(X, y).predict(X)

    def state() -> dict:
        return {
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "files": len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0,
            "random": random.getstate(),
            "numpy": str(np.random.get_state()),  # noqa: NPY002
            "torch": torch.get_rng_state().tolist(),
            "threads of torch": torch.get_num_threads(),
            "errors": np.geterr(),
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
            "filters": [str(entry) for entry in warnings.filters],
        }

    one_fit(0)
    before = state()
    sizes = []
    for number in range(100):
        one_fit(number)
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20)
    changed = [name for name, value in state().items() if value != before[name]]
    if changed:
        faults.add(f"a hundred fits changed {changed}: {[(before[n], state()[n]) for n in changed]!s:.3000}")
    growth = np.mean(sizes[-10:]) - np.mean(sizes[20:30])
    if growth > 10.0:
        faults.add(f"seventy fits took {growth:.1f} MiB: {sizes}")
    said.append(
        f"a hundred fits in one process: nothing changed but {changed}, memory grew by {growth:.1f} MiB"
    )
    return said
