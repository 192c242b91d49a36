"""What is compiled, where its machine code is kept, and that nothing old or damaged is ever run."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dgsr.kernels import compilation
from dgsr.kernels.grammar import are_valid

SOURCES = Path(compilation.__file__).parents[2]

# A package of two kernels in place of dgsr's: compiled in a second.
KERNELS = {
    "leaf.py": """
from dgsr.kernels.compilation import compiled

@compiled()
def leaf(x):
    return x + 1.0
""",
    "entry.py": """
from dgsr.kernels.compilation import compiled
from dgsr.kernels.leaf import leaf

@compiled()
def entry(x):
    return 2.0 * leaf(x)
""",
}
CALL = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from dgsr.kernels.entry import entry
    value = entry(3.0)
print(json.dumps([value, sum(entry.stats.cache_hits.values()), [str(w.message) for w in caught]]))
"""


@pytest.fixture
def package(tmp_path):
    """A folder with a package dgsr of two kernels, and the decorator that is tested."""
    kernels = tmp_path / "sources" / "dgsr" / "kernels"
    kernels.mkdir(parents=True)
    for folder in (kernels.parent, kernels):
        (folder / "__init__.py").write_text("")
    for name, source in KERNELS.items():
        (kernels / name).write_text(source)
    shutil.copy(compilation.__file__, kernels)
    return kernels


def call(package, **environment):
    """Call the kernel in a process of its own: its value, whether it was loaded, and the warnings."""
    # Python would not notice an edit of the same time and size by its own kept code.
    usual = {"PYTHONPATH": str(package.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**os.environ, **usual, **environment}
    environment = {name: value for name, value in environment.items() if value is not None}
    done = subprocess.run([sys.executable, "-c", CALL], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def machine_code(cache):
    return sorted(cache.glob("kernels-*/entry.entry-*.nbc"))


@pytest.mark.slow
def test_what_is_compiled_once_is_loaded_by_the_next_process(package, cache):
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 0, []]
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 1, []]


@pytest.mark.slow
def test_an_edit_of_what_a_kernel_calls_is_never_run_from_the_old_machine_code(package, cache):
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 0, []]
    leaf = package / "leaf.py"
    before = leaf.stat()
    leaf.write_text(KERNELS["leaf.py"].replace("1.0", "2.0"))
    os.utime(leaf, ns=(before.st_atime_ns, before.st_mtime_ns))  # same time, same size
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [10.0, 0, []]
    leaf.write_text(KERNELS["leaf.py"])
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 1, []]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: data[:-40] + bytes(40)])
@pytest.mark.parametrize("file", ["entry.entry-*.nbc", "entry.entry-*.nbi"])
def test_damaged_files_are_compiled_anew(package, cache, file, damage):
    call(package, NUMBA_CACHE_DIR=str(cache))
    (path,) = cache.glob(f"kernels-*/{file}")
    path.write_bytes(damage(path.read_bytes()))
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 0, []]
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 1, []]


@pytest.mark.slow
def test_without_a_folder_that_can_be_written_there_is_a_warning_and_compiling_in_memory(package, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for name in ("__pycache__", "leaf.py"):
        assert not (package / name).is_dir() or not list((package / name).glob("kernels-*"))
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    (package / "__pycache__").write_text("")  # as a folder that cannot be written, also for root
    places = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": str(blocked), "HOME": str(blocked)}
    value, hits, (message,) = call(package, PYTHONDONTWRITEBYTECODE="1", **places)
    assert (value, hits) == (8.0, 0)
    assert message.startswith("The compiled functions of dgsr cannot be kept, for neither ")
    assert "NUMBA_CACHE_DIR" in message
    value, hits, (message,) = call(package, NUMBA_CACHE_DIR=str(blocked / "below"))
    assert (value, hits) == (8.0, 0)


@pytest.mark.slow
def test_a_folder_that_goes_away_while_it_is_used_is_a_warning_and_no_error(package, cache):
    script = CALL.replace(
        "    value =", "    import shutil; from dgsr.kernels.compilation import folder\n"
        "    shutil.rmtree(folder().parent); open(folder().parent, 'w').close()\n    value ="
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(package.parents[1]), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, _, (message,) = json.loads(done.stdout)
    assert value == 8.0
    assert message.startswith("A compiled function could not be kept in ")


@pytest.mark.slow
def test_two_processes_on_one_empty_cache_agree(package, cache):
    environment = {**os.environ, "PYTHONPATH": str(package.parents[1]), "NUMBA_CACHE_DIR": str(cache)}
    both = [
        subprocess.Popen([sys.executable, "-c", CALL], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [json.loads(process.communicate()[0])[0] for process in both] == [8.0, 8.0]
    assert call(package, NUMBA_CACHE_DIR=str(cache)) == [8.0, 1, []]


@pytest.mark.slow
def test_machine_code_of_old_sources_does_not_pile_up(package, cache):
    for i in range(12):
        (cache / f"kernels-{i}").mkdir(parents=True)
        os.utime(cache / f"kernels-{i}", (i, i))
    call(package, NUMBA_CACHE_DIR=str(cache))
    left = sorted(cache.glob("kernels-*"))
    assert len(left) == 8
    assert len(machine_code(cache)) == 1


@pytest.mark.slow
def test_a_literal_argument_makes_no_variant_of_a_kernel(package, cache):
    entry = KERNELS["entry.py"].replace("2.0 * leaf(x)", "leaf(1) + leaf(2) + leaf(len((x, x)))")
    (package / "entry.py").write_text(entry)
    script = "from dgsr.kernels.entry import entry, leaf; print(entry(3.0), len(leaf._parts))"
    environment = {**os.environ, "PYTHONPATH": str(package.parents[1]), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["8.0", "1"], done.stderr


def test_a_kernel_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(are_valid)) is are_valid


# The price of compiling -----------------------------------------------------------------------------

COUNT = """
import json, sys
import numba.core.event as event
from dgsr.kernels.compilation import Kernel

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        compiled.append(f"{function.__module__}.{function.__name__}")
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
import dgsr.search.compiling
dgsr.search.compiling._second_process = __import__("contextlib").nullcontext
dgsr.search.compiling.compile_kernels(sys.argv[1] == "constants")
print(json.dumps([compiled, sum(len(kernel._parts) for kernel in Kernel.instances.values())]))
"""

# Of a fit with constants and one without: functions that are compiled on their own, numba's own among them,
# and parts of these. A kernel that assigns one array to another adds dozens. Raise a bound only with the
# seconds of `benchmarks/fit_times.py start-up` before and after.
MOST = {"constants": (50, 62), "exact": (68, 97)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MOST)
def test_a_fit_compiles_no_more_than_it_did(kind, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, kind], env=environment, capture_output=True, text=True, check=True
    )
    functions, n_parts = json.loads(done.stdout)
    assert len(functions) <= MOST[kind][0], sorted(functions)
    assert n_parts <= MOST[kind][1]
    if kind == "constants":
        assert not [name for name in functions if name.startswith("dgsr.exact_search")]


@pytest.mark.parametrize("fails", [False, True])
def test_the_garbage_collector_has_its_own_thresholds_back_after_a_compilation(fails, monkeypatch):
    usual, meanwhile = gc.get_threshold(), []

    def compiles(self, sig):
        meanwhile.append(gc.get_threshold())
        if fails:
            raise KeyError

    monkeypatch.setattr(compilation.CPUDispatcher, "compile", compiles)
    with pytest.raises(KeyError) if fails else contextlib.nullcontext():
        are_valid.compile(())
    assert meanwhile[0][0] > usual[0]
    assert gc.get_threshold() == usual
