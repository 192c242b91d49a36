"""Draw fresh examples for all property tests until the time is over: `nox -s fuzz -- --minutes 60`.

Round after round runs every test of hypothesis with a new seed, at low priority, in another order. A test
that fails is left out of the later rounds. What it failed on is kept in .hypothesis, where the next call of
this program begins, and in build/fuzz.txt with the seed; it belongs into the test as an `@example`.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "build" / "fuzz.txt"


class Round:
    """A plugin of pytest for one round: its order, its end, and its failures."""

    def __init__(self, seed: int, end: float, failures: dict[str, str]) -> None:
        self.seed, self.end, self.failures = seed, end, failures
        self.n_run = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid not in self.failures]
        random.Random(self.seed).shuffle(items)

    def pytest_runtest_logfinish(self):
        self.n_run += 1

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failures[report.nodeid] = f"{report.nodeid}, seed {self.seed}\n{report.longreprtext}\n\n"

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        yield
        if time.monotonic() > self.end:
            item.session.shouldstop = "the time is over"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or tests; all by default")
    arguments = parser.parse_args()
    if hasattr(os, "nice"):
        os.nice(10)
    os.chdir(ROOT)
    end = time.monotonic() + 60.0 * arguments.minutes
    failures: dict[str, str] = {}
    n_run = n_rounds = 0
    while time.monotonic() < end:
        this = Round(secrets.randbelow(2**32), end, failures)
        print(f"seed {this.seed}", flush=True)
        options = ["-q", "-m", "hypothesis", "-p", "no:cacheprovider", "--hypothesis-profile=fuzz"]
        status = pytest.main([*options, f"--hypothesis-seed={this.seed}", *arguments.tests], plugins=[this])
        n_run += this.n_run
        n_rounds += 1
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            break  # the time is over, Ctrl-C, nothing left that has not failed, or a mistake in the options
    if not n_run:
        return int(status)
    if failures:
        FOUND.parent.mkdir(exist_ok=True)
        FOUND.write_text("".join(failures.values()), encoding="utf-8")
    print(f"{n_run} runs of tests in {n_rounds} rounds, {len(failures)} failures")
    for name, text in failures.items():
        seed = text.partition("\n")[0].rpartition(" ")[2]
        print(f"FAILED pytest --hypothesis-profile=fuzz --hypothesis-seed={seed} '{name}'")
    if failures:
        print(f"What they failed on is in {FOUND}.")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
