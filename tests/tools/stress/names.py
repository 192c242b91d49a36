"""Names of columns that are code, in everything that shows a formula."""

from __future__ import annotations

import ast
import io
import json
import random
import re
import shutil
import subprocess
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from dgsr import DGSRRegressor
from dgsr.cli.results import print_result, result_of
from dgsr.expressions import Expression
from dgsr.reporting.progress import SearchProgress, search_line, shown

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c", "-"]

# Each of those with "boom" would be seen if it were run.
PIECES = (
    "boom()", "__import__('os').abort()", "=boom()", "${boom}", "{boom}", "<boom>", "</script><boom>",
    "<b onclick=boom()>", "<svg onload='boom()'>", "</title>", "<!--", "-->", "]]>", "&lt;boom&gt;",
    "*/ int boom(); /*", "*/", "/*", "//", "??/\n", "#define x1 boom()\n", "\\", "\n", "\r", "\t", "\u2028",
    "\x00", "\x1b[2J", "\x1b]0;boom\x07", "\x9b31m", "\x08", "\u202e", "\u200b", "\ud800", "\ufeff",
    "'", '"', '"""', "'''", "%s", ";", ",", ")", "(", " ", "_", "__", "np", "float", "lambda", "double",
    "value", "formula", "sin", "pi", "x1", "x2", "mass", "π", "é", "e\u0301", "\U0001d499", "1", "2nd",
)  # fmt: skip


class Names(NamedTuple):
    """Names of columns and of the target."""

    columns: list[str]
    target: str


def names(rng: random.Random, n_columns: int) -> Names:
    """Return names that are code, or nearly."""
    different: dict[str, None] = {}  # in the order they were drawn
    while len(different) <= n_columns:
        different["".join(rng.choices(PIECES, k=rng.choice([1, 1, 2, 4])))] = None
    *columns, target = different
    return Names(columns, target)


def fault_of(model: DGSRRegressor, given: Names, X: np.ndarray, y: np.ndarray, folder: Path) -> str | None:
    """Return what is wrong with what shows the formulas of a fit under other names; None if nothing is."""
    named = model.with_feature_names(given.columns)
    return (
        _of_python(named.expression_, X)
        or _of_c(named.expression_)
        or _of_report(named, given.target, X, y, folder)
        or _of_terminal(named, given)
    )


def _of_python(expression: Expression, X: np.ndarray) -> str | None:
    calls: list[str] = []
    source = expression.to_python()
    *parts, last = ast.parse(source).body
    is_for_numba = ast.unparse(last) == "formula.__numba__ = '__wrapped__'"
    if [type(part) for part in parts] != [ast.Import, ast.FunctionDef] or not is_for_numba:
        return f"Python with more than a function: {source}"
    module = {"boom": lambda *_: calls.append("boom")}
    exec(compile(source, "<formula>", "exec"), module)
    values = module["formula"](*X.T)
    if calls or not np.allclose(values, expression(X), rtol=1e-9, atol=0.0, equal_nan=True):
        return f"Python that is another formula: {source}"
    return None


def _of_c(expression: Expression) -> str | None:
    source = expression.to_c()
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    if re.search(r"\bboom\s*\(|#\s*define", code):
        return f"C with more than a function: {source}"
    if COMPILER is not None:
        ended = subprocess.run(
            [COMPILER, *STRICT], input=source.encode("ascii"), capture_output=True, check=False
        )
        if ended.returncode != 0:
            return f"C that does not compile: {source}\n{ended.stderr.decode(errors='replace')}"
    return None


class _Elements(HTMLParser):
    """The tags of a page, its attributes, and the data that its script reads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.data = ""
        self._is_data = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self._is_data = ("id", "data") in attrs

    def handle_data(self, data):
        if self._is_data:
            self.data += data

    def handle_endtag(self, tag):
        self._is_data = False

    @property
    def strangers(self) -> list[str]:
        """Tags and attributes that no report has."""
        return [
            name for name in (*self.tags, *self.attributes) if name in ("boom", "b") or name.startswith("on")
        ]


def _of_report(model: DGSRRegressor, target: str, X: np.ndarray, y: np.ndarray, folder: Path) -> str | None:
    model.report(folder / "named.html", X, y, target=target)
    page = _Elements((folder / "named.html").read_text(encoding="utf-8"))
    formulas = [_Elements(candidate["mathml"]) for candidate in json.loads(page.data)["candidates"]]
    strangers = page.strangers + [name for formula in formulas for name in formula.strangers]
    if strangers or page.tags.count("script") != 2 or any("script" in formula.tags for formula in formulas):
        return f"a report with {strangers} and {page.tags.count('script')} scripts"
    return None


def _of_terminal(model: DGSRRegressor, given: Names) -> str | None:
    text = io.StringIO()
    with redirect_stdout(text):
        print_result(model, result_of(model, given.target), all_rows=True)
    with shown(search_line, Console(file=text)) as show:
        show(SearchProgress(100, 1.0, 0.1, model.expression_.with_feature_names(given.columns)))
    orders = {c for c in text.getvalue() if not c.isprintable() and c != "\n"}
    return f"a terminal is given {orders}" if orders else None
