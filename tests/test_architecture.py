"""The house is what docs/rooms.py says: which room uses which, and what none may know."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from dgsr.kernels import compilation

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def rooms():
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packages_of(path):
    """The packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_room_uses_rooms_below_it_only(rooms):
    assert rooms.upward() == []


def test_an_import_that_goes_up_is_seen_wherever_it_stands(rooms, tmp_path, monkeypatch):
    for room in ("kernels", "data"):
        (tmp_path / "dgsr" / room).mkdir(parents=True)
    for name, source in {
        "__init__.py": "",
        "data/population.py": "",
        "kernels/__init__.py": "",
        "kernels/grammar.py": "def f():\n    from dgsr.data import population\n",
    }.items():
        (tmp_path / "dgsr" / name).write_text(source)
    monkeypatch.setattr(rooms, "SOURCES", tmp_path / "dgsr")
    assert rooms.upward() == [("kernels", "data")]


def test_no_module_uses_itself_by_way_of_others(rooms):
    uses = {}
    for module, imported in rooms.imports():
        uses.setdefault(module, set()).add(imported)
    TopologicalSorter(uses).prepare()  # raises a CycleError that names the circle


def test_folders_side_by_side_do_not_use_each_other_in_a_circle(rooms):
    uses = {}
    for module, imported in rooms.imports():
        folders = module.split(".")[:-1], imported.split(".")[:-1]
        shared = next((i for i, (a, b) in enumerate(zip(*folders)) if a != b), None)
        if shared is not None:
            folder, other = (".".join(parts[: shared + 1]) for parts in folders)
            uses.setdefault(folder, set()).add(other)
    assert uses["dgsr.expressions.formulas"] > {"dgsr.expressions.exports"}
    TopologicalSorter(uses).prepare()


def test_every_module_has_a_room_and_every_room_a_module(rooms):
    assert {rooms.room_of(module) for module in rooms.modules()} == set(rooms.ROOMS)


def test_a_person_can_see_the_house_at_a_glance(rooms):
    assert len(rooms.ROOMS) <= 20


@pytest.mark.parametrize(
    ("room", "package"),
    [
        ("kernels", "torch"),
        ("exact_search", "torch"),
        ("generator", "sklearn"),
        ("search", "sklearn"),
        ("finders", "torch"),
        ("pretraining", "sklearn"),
    ],
)
def test_a_room_does_not_know_a_package(rooms, room, package):
    paths = [path for module, path in rooms.modules().items() if rooms.room_of(module) == room]
    assert [path.name for path in paths if package in packages_of(path)] == []


def test_a_process_of_a_search_imports_neither_scikit_learn_nor_pandas():
    """They would take half of the seconds in which the processes of a fit with `n_jobs` begin."""
    code = "import sys, dgsr.search.islands; print({'sklearn', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_compiled_code_is_made_of_modules_that_its_digest_covers(rooms):
    """Whatever a module with kernels imports has kernels itself, stands in their folder, or is known to."""
    files = rooms.modules()
    decorator = compilation._IMPORTS_A_DECORATOR
    with_kernels = {module for module, path in files.items() if decorator.search(path.read_bytes())}
    covered = with_kernels | {module for module in files if module.startswith("dgsr.kernels.")}
    covered.update(compilation.READ_BY_KERNELS)
    assert covered <= set(files)
    assert {imported for module, imported in rooms.imports() if module in with_kernels} <= covered
