"""The module that SRBench imports: the estimator, its formula as text for sympy, and its settings."""

from __future__ import annotations

import copy
import keyword
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
import sympy
from sympy.printing.str import StrPrinter

from dgsr import DGSRRegressor

# Seconds of max_time, and the largest share of it, that are reserved for finishing the formulas.
_FINISHING, _FINISHING_SHARE = 30.0, 0.1

# Names that a formula's text or sympy's parser needs, and that no column may have.
_FUNCTIONS = "exp log sin cos tan cot sinh cosh tanh asin acos atan sqrt Abs re im sign arg"
_PARSERS_WORDS = "Symbol Function Integer Float Rational pi"
_TAKEN = frozenset([*_FUNCTIONS.split(), *_PARSERS_WORDS.split()])

# Largest population that SRBench accepts.
_LARGEST_POPULATION = 100


class SRBenchRegressor(DGSRRegressor):
    """`DGSRRegressor` that keeps SRBench's time limit and predicts a finite number for every row.

    `max_time` limits the whole `fit`, so the search ends a little earlier. SRBench gives up a run whose
    predictions are not all finite, so rows where the formula is undefined get the mean of y.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SRBenchRegressor:
        """Search for the formula behind the data; see `DGSRRegressor.fit`.

        The exception of SRBench's alarm passes through, and the estimator keeps the best formula so far.
        """
        limit = self.max_time
        if limit is not None:
            self.max_time = limit - min(_FINISHING, _FINISHING_SHARE * limit)
        try:
            super().fit(X, y, sample_weight)
        finally:
            self.max_time = limit
            if hasattr(self, "expression_"):
                self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the values of the chosen formula, shape (n_samples,), all of them finite."""
        values = super().predict(X)
        return np.where(np.isfinite(values), values, self.mean_)


#: SRBench sets `random_state`, and `max_time` by the number of rows; evaluations are practically unlimited.
est = SRBenchRegressor(max_evaluations=10**12, max_time=3600, random_state=0)

#: Columns and target are not scaled, since scaling hides the constants of a law.
eval_kwargs: dict[str, Any] = {
    "test_params": {"max_evaluations": 20_000},
    "scale_x": False,
    "scale_y": False,
    "use_dataframe": True,
}


def model(est: DGSRRegressor, X: Any = None) -> str:
    """Return the formula as text that sympy parses.

    Parameters
    ----------
    est : DGSRRegressor
        A fitted estimator.
    X : DataFrame, optional
        Table whose columns name the variables; by default the names are those of the fit, or x1 .. xd.

    Returns
    -------
    str
        The formula in the columns' names, or `readable_names` where sympy cannot parse these.
    """
    names = getattr(X, "columns", est.expression_.feature_names)
    expression = est.expression_.with_feature_names(readable_names(names))
    # With spaces, because SRBench's assessment deletes "p/" as an operator of another method.
    return _Printer().doprint(expression.sympy).replace("/", " / ")


def readable_names(names: Iterable[str]) -> list[str]:
    """Return the names, with characters and words replaced that sympy cannot parse in a formula.

    Examples
    --------
    >>> readable_names(["beta", "I", "wing length", "lambda", "2nd"])
    ['beta', 'I', 'wing_length', 'lambda_', 'x_2nd']
    """
    names = [str(name) for name in names]
    taken = {name for name in names if _is_readable(name)}
    readable = []
    for name in names:
        if not _is_readable(name):
            name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))
            name = name if name.isidentifier() else f"x_{name}"
            while name in taken or not _is_readable(name):
                name += "_"
            taken.add(name)
        readable.append(name)
    return readable


def _is_readable(name: str) -> bool:
    # Python, which sympy's parser uses, normalises names, so that a name that is not normalised is lost.
    is_name = name.isidentifier() and name == unicodedata.normalize("NFKC", name)
    return is_name and not keyword.iskeyword(name) and name not in _TAKEN


class _Printer(StrPrinter):
    """Sympy's printer with all digits of a float, and with exp(1) for E, which may be a column."""

    def _print_Float(self, number: sympy.Float) -> str:
        return repr(float(number))

    def _print_Exp1(self, number: Any) -> str:
        return "exp(1)"


def complexity(est: DGSRRegressor | sympy.Basic) -> int:
    """Return the number of nodes as SRBench counts them; its own test passes the formula itself."""
    expression = est if isinstance(est, sympy.Basic) else est.sympy_expr_
    return sum(1 for _ in sympy.preorder_traversal(expression))


def get_population(est: DGSRRegressor) -> list[DGSRRegressor]:
    """Return an estimator for each formula of the Pareto front, the simplest first."""
    n = len(est.pareto_front_)
    return [copy.copy(est).choose(i) for i in range(max(0, n - _LARGEST_POPULATION), n)]


def get_best_solution(est: DGSRRegressor) -> DGSRRegressor:
    """Return the estimator itself, which has the chosen formula."""
    return est
