"""NIST's tables for nonlinear regression: the formula that is found beside the published one.

    python benchmarks/nist.py FOLDER [--seconds S] --out FILE.json

FOLDER has the files of the Statistical Reference Datasets, Misra1a.dat and others, from
https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml. Each gives the model that somebody chose for the
table, and the residual sum of squares of its certified fit. Written are the formula, its NMSE over
that of the model, the numbers of constants of both, and whether the two have one skeleton, scale and offset
left out (`dgsr.expressions.formulas.skeletons`), where the model can be written in the library `physics`.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.expressions.formulas.skeletons import NUMBER, Skeleton, parts_of, summed
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import map_leaves


class Table(NamedTuple):
    """A table of measurements, and the model that was published for it."""

    name: str
    X: np.ndarray  # (n_rows, n_columns)
    y: np.ndarray  # (n_rows,), its logarithm where the model is of that
    model: str
    n_parameters: int
    nmse: float  # of the certified fit


def read(path: Path) -> Table:
    """Read a file of the reference datasets."""
    text = path.read_text()
    lines = text.splitlines()
    first, last = map(int, re.search(r"Data +\(lines (\d+) to (\d+)\)", text).groups())
    rows = np.array([line.split() for line in lines[first - 1 : last]], dtype=np.float64)
    about = re.search(r"^Model:.*?^ +Starting +[Vv]alues", text, re.DOTALL | re.MULTILINE).group()
    left, model = re.search(r"(log\[y\]|\by) +=(.*?)\+ *e *$", about, re.DOTALL | re.MULTILINE).groups()
    model = " ".join(model.replace("[", "(").replace("]", ")").split())
    model = re.sub(r"(?<![\d)])\.(?=\d)", "0.", model)
    y = np.log(rows[:, 0]) if left.startswith("log") else rows[:, 0]
    squares = float(re.search(r"Residual Sum of Squares: +(\S+)", text).group(1))
    n_parameters = int(re.search(r"(\d+) Parameters", about).group(1))
    return Table(path.stem, rows[:, 1:], y, model, n_parameters, squares / (len(y) * y.var()))


def skeleton_of(expression: Expression) -> Skeleton | None:
    """Return the skeleton of a formula with an offset, or None."""
    program = expression.tokens.tolist(), expression.constants.tolist()
    skeleton = parts_of(expression.library, *program)[0].skeleton
    return None if skeleton is None else summed([skeleton, NUMBER])


def written(model: str, library: Library) -> Expression | None:
    """Return a model with some numbers as its parameters, or None where the library cannot write it."""
    names = {"x": "x1", **{f"b{i}": 0.31 + 0.27 * i for i in range(1, 10)}}
    try:
        return Expression(library, *to_program(map_leaves(parse(model), lambda a: names.get(a, a)), library))
    except ValueError:
        return None


def result(table: Table, seconds: float) -> dict[str, Any]:
    """Return what a fit finds, beside the published model."""
    regressor = DGSRRegressor(max_time=seconds, max_evaluations=10**9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regressor.fit(table.X, table.y)
    found = regressor.expression_
    model = written(table.model, get_library("physics", table.X.shape[1]))
    residuals = table.y - regressor.predict(table.X)
    return {
        "table": table.name,
        "rows": len(table.y),
        "model": table.model,
        "model_constants": table.n_parameters,
        "model_nmse": table.nmse,
        "formula": found.text,
        "constants": len(found.constants),
        "ratio": float(np.mean(residuals**2) / table.y.var() / table.nmse),
        "same_form": None if model is None else skeleton_of(model) == skeleton_of(found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    results = []
    for path in sorted(arguments.folder.glob("*.dat")):
        own = result(read(path), arguments.seconds)
        results.append(own)
        verdict = {True: "same form", False: "", None: "no operator"}[own["same_form"]]
        constants = f"{own['constants']} of {own['model_constants']}"
        print(
            f"{own['table']:10} {own['ratio']:9.3g} {constants:>8} {verdict:11} {own['formula']}", flush=True
        )
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
