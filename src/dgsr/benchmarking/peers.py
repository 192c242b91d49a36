"""Regressors of pyoperon: the methods ``operon`` and ``operon-selected``.

The package is no dependency: a fit imports it. Formulas are read with the library ``physics`` for all
problems, since it has constants and every operator of the peers.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectFromModel

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import get_library
from dgsr.pareto.candidate import Candidate


def imported(module: str) -> Any:
    """Return a module of a peer; ValueError if its package is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ValueError(
            f"The package {package} cannot be imported ({error}); install it with pip install {package}, "
            "or leave its method out."
        ) from error


class OperonRegressor(RegressorMixin, BaseEstimator):
    """Genetic programming of pyoperon on one thread.

    Notes
    -----
    The parameters are those of its entry in SRBench, two objectives (error and length) and one step of
    Levenberg-Marquardt for the constants of each formula, without the tuning of operators and length in
    SRBench; all others are the package's defaults. The formula of the front with the smallest Bayesian
    information criterion is chosen, since the default criterion, a description length, needs the noise as a
    parameter. It lacks ``cube``, ``neg`` and ``inv``. Its formulas have coefficients of variables, a scale
    and an offset in every library, and `max_length` bounds its nodes without these. It computes in single
    precision. `max_time` is rounded down to whole seconds, at least one. One evaluation computes the
    residuals or their derivatives on all rows.
    """

    #: Pyoperon's names of the operators that it has, by our names.
    names: ClassVar[dict[str, str]] = {
        "add": "add", "sub": "sub", "mul": "mul", "div": "div", "exp": "exp", "log": "log", "sin": "sin",
        "cos": "cos", "sqrt": "sqrt", "square": "square", "pow": "pow", "tanh": "tanh", "abs": "abs",
        "arcsin": "asin", "arccos": "acos",
    }  # fmt: skip
    expression_: Expression
    pareto_front_: list[Candidate]
    n_evaluations_: int
    stop_reason_: str

    def __init__(
        self,
        library: str = "physics",
        max_evaluations: int = 2_000_000,
        max_length: int = 30,
        random_state: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.library = library
        self.max_evaluations = max_evaluations
        self.max_length = max_length
        self.random_state = random_state
        self.max_time = max_time

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Search for a formula of `y`, shape (n_samples,), in the columns of `X`."""
        return self._search(X, y, slice(None), self.max_time)

    def _search(
        self, X: np.ndarray, y: np.ndarray, columns: slice | np.ndarray, max_time: float | None
    ) -> Self:
        """Search in some `columns` of `X`; the formulas have the numbers that these have in `X`."""
        self._columns, self.n_features_in_ = columns, X.shape[1]
        limit = None if max_time is None else max(1, int(max_time))
        operators = get_library(self.library, 1).operators
        symbols = [self.names[operator] for operator in operators if operator in self.names]
        model = imported("pyoperon.sklearn").SymbolicRegressor(
            allowed_symbols=",".join([*symbols, "constant", "variable"]),
            objectives=["r2", "length"],
            optimizer_iterations=1,
            model_selection_criterion="bayesian_information_criterion",
            max_length=self.max_length,
            generations=10**9,  # which no run reaches
            max_evaluations=self.max_evaluations,
            max_time=limit,
            n_threads=1,
            random_state=self.random_state,
        )
        start = time.perf_counter()
        self._model = model.fit(X[:, columns], y)
        is_late = limit is not None and time.perf_counter() - start >= limit
        self.stop_reason_ = "max_time" if is_late else "max_evaluations"
        self.expression_ = self._expression(model.model_)
        self.pareto_front_ = []
        for each in model.pareto_front_:
            expression = self._expression(each["tree"])
            loss = each["mean_squared_error"] / np.var(y)
            self.pareto_front_.append(Candidate(expression.complexity, float(loss), expression))
        self.n_evaluations_ = sum(model.stats_[f"{kind}_evaluations"] for kind in ("residual", "jacobian"))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions of pyoperon, shape (n_samples,)."""
        return self._model.predict(X[:, self._columns]).astype(np.float64)

    def _expression(self, tree: Any) -> Expression:
        names = [f"x{i + 1}" for i in np.arange(self.n_features_in_)[self._columns]]
        decimals = decimals_of([node.Value for node in tree.Nodes])
        text = self._model.get_model_string(tree, decimals, names)
        return Expression.from_text(text, get_library("physics", self.n_features_in_))


class OperonSelectedRegressor(OperonRegressor):
    """``OperonRegressor`` in the six columns that are most important to a random forest.

    Notes
    -----
    A law of the drawn sets ``wide-12``, ``wide-30`` and ``wide-100`` depends on six columns at the most, so
    that all can be among them. The columns are selected as by the parameter ``select_k_features`` of PySR,
    and all are taken where there are no more than six. The seconds of the forest, which has one thread, are
    taken from `max_time` before that is rounded down.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Search for a formula of `y`, shape (n_samples,), in selected columns of `X`."""
        start = time.perf_counter()
        forest = RandomForestRegressor(n_estimators=100, max_depth=3, random_state=0)
        n_selected = min(6, X.shape[1])  # scikit-learn refuses more than there are before 1.8
        selection = SelectFromModel(forest, threshold=-np.inf, max_features=n_selected)
        columns = selection.fit(X, y).get_support(indices=True)
        seconds = time.perf_counter() - start
        return self._search(X, y, columns, None if self.max_time is None else self.max_time - seconds)


def decimals_of(values: Sequence[float]) -> int:
    """Return how many decimals identify numbers in single precision (9 digits), of at most 49 digits."""
    powers = [math.floor(math.log10(abs(value))) for value in values if value != 0.0 and math.isfinite(value)]
    return max(0, min(9 - min(powers, default=0), 48 - max([0, *powers])))
