"""What must be so before anything is imported, what hypothesis draws, and compiling before the tests."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Else scikit-learn skips its checks with other arrays than numpy's.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Linear algebra in one thread: two workers whose threads share two cores wait for each other, which made
# some tests ten times as long. The libraries read this once, when they are loaded.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# The tests draw the same examples every time, so that a red one is the fault of the last change. Fresh ones
# are drawn by `nox -s fuzz`, which chooses the other profile.
settings.register_profile("tests", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=500, deadline=None, print_blob=True)
settings.load_profile("tests")

# Side by side: the kernels of fits, and those of the prior. Each takes one process, for importing what is
# compiled takes seconds, so the fits start no second one. Those without constants come first, since those
# with constants use most of the same.
_COMPILE_FITS = """
from contextlib import nullcontext
from dgsr.search import compiling
compiling._second_process = nullcontext
compiling.compile_kernels(has_constants=False)
compiling.compile_kernels(has_constants=True)
"""
_COMPILE_PRIOR = f"""
import sys
from dgsr.expressions import Constraints, get_library
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior
library = get_library("koza", 1)
Prior.default_for(library, 1).draw(2, 10, 1, library, Constraints(), new_state(0))
sys.path.insert(0, {str(Path(__file__).parent / "pretraining")!r})
from test_prior_laws import drawn_laws
drawn_laws(1)
"""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config, specs):
    """Compile what most tests need before the workers start, each of which would compile all of it."""
    print("compiling what the cache of compiled kernels lacks", flush=True)
    running = [subprocess.Popen([sys.executable, "-c", code]) for code in (_COMPILE_FITS, _COMPILE_PRIOR)]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise pytest.UsageError("The kernels could not be compiled; the traceback is above.")


def pytest_collection_modifyitems(items):
    """Leave tests in a browser, which a new machine seldom has, to the session of the slow ones."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def benchmark():
    """A function that imports a program of benchmarks/ as it is started, beside its neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
        yield importlib.import_module
