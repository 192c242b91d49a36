"""The rooms of the code, read from its imports: who uses whom, and the picture of it in architecture.md.

An import within a function or for type checking counts like any other. `tests/test_architecture.py` fails
where one goes up, and where the picture is not what the imports are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "dgsr"

#: Floor by floor, from the top: every room with what it is for. A room uses rooms of lower floors only.
FLOORS = (
    {"cli": "the command line"},
    {"benchmarking": "recovery rates, tables", "dgsr": "the public names"},
    {"estimator": "DGSRRegressor"},
    {"fitting": "the passes of a fit"},
    {"search": "Algorithm 2", "pretraining": "Algorithm 1, the prior"},
    {"generator": "encoder, decoder"},
    {"finders": "laws without evolution", "reporting": "the page, progress"},
    {"finishing": "formulas for people", "pareto": "front, selection"},
    {"exact_search": "laws by enumeration", "constants": "fits constants"},
    {"data": "rows, programs", "problems": "benchmark laws"},
    {"expressions": "what a person sees"},
    {"files": "files, whole or not", "kernels": "compiled loops"},
)
ROOMS = {room: words for floor in FLOORS for room, words in floor.items()}


def modules() -> dict[str, Path]:
    """Return the file of every module by its name, `dgsr` first."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports() -> Iterator[tuple[str, str]]:
    """Yield every pair of a module and a module of the package that it imports."""
    known = modules()
    for module, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                while name and name not in known:
                    name = name.rpartition(".")[0]
                if name and name != module:
                    yield module, name


def room_of(module: str) -> str:
    """Return the room of a module: the longest name of a room that it begins with."""
    if module == "dgsr":
        return module
    if module == "dgsr.__main__":  # another door to the command line
        return "cli"
    name = module.removeprefix("dgsr.")
    while name not in ROOMS:
        if "." not in name:
            raise KeyError(f"{module} belongs to no room of docs/rooms.py")
        name = name.rpartition(".")[0]
    return name


def uses() -> dict[str, set[str]]:
    """Return which other rooms each room uses."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, imported in imports():
        room, other = room_of(module), room_of(imported)
        if room != other:
            found[room].add(other)
    return found


def upward() -> list[tuple[str, str]]:
    """Return the pairs of rooms of which the first uses the second without standing above it."""
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    return [
        (room, other) for room, others in uses().items() for other in others if floor[other] <= floor[room]
    ]


def drawn() -> list[tuple[str, str]]:
    """Return the uses that the picture shows: those that do not follow from others it shows."""
    used = uses()
    below: dict[str, set[str]] = {}
    for room in reversed(ROOMS):
        below[room] = used[room].union(*(below.get(other, set()) for other in used[room]))
    return [
        (room, other)
        for room, others in used.items()
        for other in sorted(others)
        if not any(other in below[between] for between in others)
    ]
