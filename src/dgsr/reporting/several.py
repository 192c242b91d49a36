"""The reports of several targets in one HTML file."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dgsr.files.writing import write_atomically

# Every report is a page of its own within the file, as high as its content.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ margin: 0; background: light-dark(#f5f5f2, #121418); font: 1rem/1.5 system-ui, sans-serif }}
header {{ max-width: 72rem; margin: 0 auto; padding: 2rem 1.5rem 0 }}
code {{ overflow-wrap: anywhere }}
iframe {{ display: block; width: 100%; height: 100vh; border: 0 }}
</style>
</head>
<body>
<header><h1>{title}</h1><ul>{formulas}</ul></header>
{frames}
</body>
</html>
"""
_FRAME = (
    '<iframe id="target-{i}" title="{name}" srcdoc="{page}" onload="const {{ body }} = this.contentDocument; '
    "new ResizeObserver(() => this.style.height = body.offsetHeight + 'px').observe(body)\"></iframe>"
)


def write_reports(
    estimators: Sequence[Any],
    path: str | Path,
    X: Any,
    y: Any,
    *,
    target: Sequence[str],
    title: str | None = None,
    test: tuple[Any, ...] | None = None,
    **options: Any,
) -> None:
    """Write the reports of the fits of several targets, whose names are `target`, to one file.

    `y`, and that of `test`, has a column for each target; X and y are the rows of the fits if they are None.
    Options are those of `dgsr.reporting.write_report`. ValueError if `y` has another number of columns.
    """
    n = len(estimators)
    targets = [None] * n if y is None else _columns(y, n)
    tests = [None] * n if test is None else [(test[0], own, *test[2:]) for own in _columns(test[1], n)]
    formulas, frames = [], []
    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        each = zip(estimators, target, targets, tests, strict=True)
        for i, (estimator, name, values, held_out) in enumerate(each):
            estimator.report(page, X, values, target=name, test=held_out, **options)
            text = html.escape(f"{name} = {estimator.expression_.text}")
            formulas.append(f'<li><a href="#target-{i}"><code>{text}</code></a></li>')
            content = html.escape(page.read_text(encoding="utf-8"))
            frames.append(_FRAME.format(i=i, name=html.escape(name), page=content))
    whole = _PAGE.format(
        title=html.escape(title or f"Formulas for {len(frames)} targets"),
        formulas="".join(formulas),
        frames="\n".join(frames),
    )
    write_atomically(path, whole.encode(errors="backslashreplace"))


def _columns(y: Any, n: int) -> np.ndarray:
    """Return the targets (n, n_rows); ValueError if there are not `n` of them."""
    columns = np.asarray(y).T
    if len(columns) != n:
        raise ValueError(f"y has shape {np.shape(y)}; give a column for each of {n} targets.")
    return columns
