"""What SRBench imports: the estimator, its formula as text for sympy, and how it is to be run."""

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

# Seconds of max_time, and the largest share of it, kept for what comes after the search.
_FINISHING, _FINISHING_SHARE = 30.0, 0.1

# What a formula's text and sympy's parser need for themselves, whatever the columns are called.
_FUNCTIONS = "exp log sin cos tan cot sinh cosh tanh asin acos atan sqrt Abs re im sign arg"
_PARSERS_WORDS = "Symbol Function Integer Float Rational pi"
_TAKEN = frozenset([*_FUNCTIONS.split(), *_PARSERS_WORDS.split()])

# SRBench takes no larger populations.
_LARGEST_POPULATION = 100


class SRBenchRegressor(DGSRRegressor):
    """`DGSRRegressor` as SRBench wants one: on time, and with a number for every row.

    `max_time` is the limit of the whole `fit`; the search ends a little earlier. SRBench gives up a run
    whose predictions are not all finite, so rows the formula has no value for get the mean of y.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SRBenchRegressor:
        """Search for the formula behind the data; see `DGSRRegressor.fit`.

        SRBench's alarm passes through, and leaves the estimator fitted with the best formula so far.
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
        """Evaluate the chosen formula: finite everywhere, shape (n_samples,)."""
        values = super().predict(X)
        return np.where(np.isfinite(values), values, self.mean_)


#: SRBench writes `random_state` and, by the number of rows, `max_time`; evaluations are not to run out.
est = SRBenchRegressor(max_evaluations=10**12, max_time=3600, random_state=0)

#: Columns and target as they are: laws have their own units, and scaling hides their constants.
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
        Fitted.
    X : DataFrame, optional
        Its columns name the variables; those of the fit by default, or x1 .. xd.

    Returns
    -------
    str
        Columns have their own names where sympy can read them, those of `readable_names` elsewhere.
    """
    names = getattr(X, "columns", est.expression_.feature_names)
    expression = est.expression_.with_feature_names(readable_names(names))
    # With spaces, because SRBench's assessment deletes "p/" as an operator of another method.
    return _Printer().doprint(expression.sympy).replace("/", " / ")


def readable_names(names: Iterable[str]) -> list[str]:
    """Return names that can stand in a formula: those given, but for characters and words that can't.

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
    # Python, which sympy's parser uses, normalises names: an unnormalised one would not be found again.
    is_name = name.isidentifier() and name == unicodedata.normalize("NFKC", name)
    return is_name and not keyword.iskeyword(name) and name not in _TAKEN


class _Printer(StrPrinter):
    """Sympy's own, but for numbers: all digits of a float, and no E, which may be a column."""

    def _print_Float(self, number: sympy.Float) -> str:
        return repr(float(number))

    def _print_Exp1(self, number: Any) -> str:
        return "exp(1)"


def complexity(est: DGSRRegressor | sympy.Basic) -> int:
    """Return the number of nodes of the formula as SRBench counts them; its test gives the formula itself."""
    expression = est if isinstance(est, sympy.Basic) else est.sympy_expr_
    return sum(1 for _ in sympy.preorder_traversal(expression))


def get_population(est: DGSRRegressor) -> list[DGSRRegressor]:
    """Return the Pareto front, the simplest first: estimators that `model` and `predict` work with."""
    population = []
    for candidate in est.pareto_front_[-_LARGEST_POPULATION:]:
        member = copy.copy(est)
        member.expression_ = candidate.expression
        population.append(member)
    return population


def get_best_solution(est: DGSRRegressor) -> DGSRRegressor:
    """Return the estimator with the formula it has chosen: itself."""
    return est
