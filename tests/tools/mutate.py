"""Change one operator or number of a kernel at a time, and see whether its tests notice.

`python tests/tools/mutate.py --number 30 --seed 0` draws the changes, makes each in a copy of the sources and
runs the tests of that kernel on the copy, one after the other, at low priority. Every change compiles the
kernels anew, so one takes a minute or two. A change that no test notices is either a gap in the tests or
makes no difference; who reads the list decides which.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "dgsr"

# The files that touch a kernel, where they are others than those that import it by name.
TESTS = {
    "arrays": ("test_exact_search",),
    "backpropagation": ("test_exact_search",),
    "canonical": ("test_prior", "test_pretraining"),
    "compiled_decoder": ("test_generator", "test_guide"),
    "enumeration": ("test_exact_search",),
    "dimensions": ("test_units",),
    "inverses": ("test_exact_search",),
    "jacobian": ("test_constants", "test_finishing"),
    "levenberg_marquardt": ("test_constants", "test_finishing", "test_by_group"),
    "prior_kernel": ("test_prior", "test_pretraining"),
    "prior_programs": ("test_prior",),
    "prior_trees": ("test_prior",),
    "random": ("test_evolve", "test_prior"),
    "sampling": ("test_generator",),
}
# What the decorators of compiled functions are called.
DECORATORS = ("compiled", "allocation_free", "inlined", "_lean", "_leaf", "_summing")
SWAPPED = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*", "<": "<=", "<=": "<", ">": ">=",
    ">=": ">", "==": "!=", "!=": "==", "and": "or", "or": "and", "&": "|", "|": "&", "^": "&", "<<": ">>",
    ">>": "<<",
}  # fmt: skip


class Mutation(NamedTuple):
    """A change of one place of a source: characters `start` to `end` of a line become `new`."""

    file: Path
    line: int
    start: int
    end: int
    new: str

    def __str__(self) -> str:
        old = self.file.read_text(encoding="utf-8").splitlines()[self.line - 1]
        changed = old[: self.start] + self.new + old[self.end :]
        return f"{self.file.name}:{self.line}: {old.strip()}  ->  {changed.strip()}"


def mutations(file: Path) -> Iterator[Mutation]:
    """All changes of the compiled functions of a file."""
    source = file.read_text(encoding="utf-8")
    lines = source.splitlines()
    for function in ast.parse(source).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any(name in ast.unparse(one) for one in function.decorator_list for name in DECORATORS):
            continue
        for statement in function.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # the docstring
            for node in ast.walk(statement):
                yield from _of_node(node, file, lines)


def _of_node(node: ast.AST, file: Path, lines: list[str]) -> Iterator[Mutation]:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value + 0.5
        yield Mutation(file, node.lineno, node.col_offset, node.end_col_offset, repr(value))
    elif isinstance(node, ast.BinOp):
        yield from _between(node.left, node.right, file, lines)
    elif isinstance(node, ast.Compare):
        yield from _between(node.left, node.comparators[0], file, lines)
    elif isinstance(node, ast.BoolOp):
        yield from _between(node.values[0], node.values[1], file, lines)


def _between(left: ast.expr, right: ast.expr, file: Path, lines: list[str]) -> Iterator[Mutation]:
    """The operator between two operands, where both are on one line."""
    if left.end_lineno != right.lineno:
        return
    between = lines[left.end_lineno - 1][left.end_col_offset : right.col_offset]
    match = re.search(r"[^\s()]+", between)
    if match and match[0] in SWAPPED:
        start = left.end_col_offset + match.start()
        yield Mutation(file, left.end_lineno, start, start + len(match[0]), SWAPPED[match[0]])


def files() -> list[Path]:
    """The files with compiled functions."""
    return [path for path in sorted(SOURCES.rglob("*.py")) if next(mutations(path), None)]


def tests_of(kernel: str) -> list[str]:
    """The test files that touch a kernel."""
    named = [
        path.stem
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(
            rf"^from dgsr\.\w+(\.| import .*\b){kernel}\b",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    ]
    return [
        str(path.relative_to(ROOT))
        for name in TESTS.get(kernel, named)
        for path in (ROOT / "tests").rglob(f"{name}.py")
    ]


def is_caught(mutation: Mutation, copy: Path, limit: float) -> str | None:
    """Return what notices the change: the first test that fails, or None."""
    target = copy / mutation.file.relative_to(ROOT)
    lines = mutation.file.read_text(encoding="utf-8").splitlines(keepends=True)
    line = lines[mutation.line - 1]
    lines[mutation.line - 1] = line[: mutation.start] + mutation.new + line[mutation.end :]
    target.write_text("".join(lines), encoding="utf-8")
    cache = copy / "cache"
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *tests_of(mutation.file.stem)],
            cwd=copy, env=environment, capture_output=True, text=True, timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"longer than {limit:g} s"
    finally:
        shutil.copy(mutation.file, target)
        shutil.rmtree(cache, ignore_errors=True)
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"exit status {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=30, help="how many changes are drawn")
    parser.add_argument("--seed", type=int, default=0, help="which are drawn")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the changes to try; all by default")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds a change may take")
    parser.add_argument("--list", action="store_true", help="list the changes and try none")
    arguments = parser.parse_args()
    if hasattr(os, "nice"):
        os.nice(10)
    everything = [mutation for file in files() for mutation in mutations(file)]
    drawn = random.Random(arguments.seed).sample(everything, arguments.number)
    n_tried = n_caught = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("src", "tests", "pretrained"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", copy)
        for number, mutation in enumerate(drawn):
            if arguments.only is not None and number not in arguments.only:
                continue
            print(f"{number:3} {mutation}", flush=True)
            if arguments.list:
                continue
            started = time.monotonic()
            noticed = is_caught(mutation, copy, arguments.limit)
            n_tried, n_caught = n_tried + 1, n_caught + (noticed is not None)
            print(f"    {noticed or 'SURVIVED'} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{n_caught} of {n_tried} changes are noticed ({len(everything)} are possible)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
