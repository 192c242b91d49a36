"""The programs that test the tests: what they set and change is what they say."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent / "tools"


def load(program):
    spec = importlib.util.spec_from_file_location(f"tools_{program}", TOOLS / f"{program}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_numpy_and_numba_take_the_environment_of_an_old_processor_without_a_warning():
    code = "import numpy, numba; print(numba.config.CPU_NAME, repr(numba.config.CPU_FEATURES))"
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, **load("other_processor").environment()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("generic ''\n", "")


def test_a_command_run_as_on_an_old_processor_ends_as_it_does():
    command = [sys.executable, TOOLS / "other_processor.py", sys.executable, "-c", "raise SystemExit(3)"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 3


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["inverses", "grammar"])
def test_a_mutation_changes_one_place_of_a_source_that_still_parses(kernel):
    mutate = load("mutate")
    file = mutate.SOURCES / "kernels" / f"{kernel}.py"
    source = file.read_text(encoding="utf-8").splitlines()
    found = list(mutate.mutations(file))
    assert len(found) > 20
    tree = ast.dump(ast.parse("\n".join(source)))
    for mutation in found:
        changed = list(source)
        line = changed[mutation.line - 1]
        changed[mutation.line - 1] = line[: mutation.start] + mutation.new + line[mutation.end :]
        assert ast.dump(ast.parse("\n".join(changed))) != tree


def test_every_kernel_has_tests_that_exist():
    mutate = load("mutate")
    files = mutate.files()
    assert len(files) > 20
    for file in files:
        tests = mutate.tests_of(file.stem)
        assert tests, file.stem
        assert all((mutate.ROOT / test).is_file() for test in tests)
