"""The methods of a fitted estimator: to predict, save, report and display."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from dgsr import saving
from dgsr.expressions.expression import Expression
from dgsr.pareto import SELECTIONS, Candidate, ParetoFront


class FittedRegressor(RegressorMixin, BaseEstimator):
    """The methods that a regressor has once its `fit` has chosen a formula."""

    expression_: Expression
    pareto_front_: ParetoFront
    loss_: str
    _rows: tuple[np.ndarray, np.ndarray, np.ndarray | None]  # rows of the fit with targets and weights

    @overload
    def predict(
        self, X: Any, index: int | str | None = None, *, return_std: Literal[False] = False
    ) -> np.ndarray: ...
    @overload
    def predict(
        self, X: Any, index: int | str | None = None, *, return_std: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(self, X, index=None, *, return_std=False):
        """Evaluate a formula.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        index : int or str, optional
            Which candidate to evaluate, if not the chosen one: its number in `pareto_front_`, or the name of
            a rule that chooses it (see `selection`).
        return_std : bool, default=False
            Whether to return the standard deviation of a new measurement, too.

        Returns
        -------
        ndarray of shape (n_samples,), or a pair of them
            Values of the formula; not finite where it is undefined. With `return_std`, the standard deviation
            of a new measurement around each: the noise that the fit left over and the uncertainty of the
            constants, by linearisation. The noise has one size, or is in proportion to the formula if the
            fit judged relative errors; under other losses it is that of a row of mean weight. The form of the
            formula is taken for granted, so the deviation is too small where the form is wrong.

        Raises
        ------
        ValueError
            If there is no such candidate or rule, or with `return_std` if the candidate comes from a file of
            an earlier version, which has no uncertainties.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        expression = self.expression_ if index is None else self._candidate(index).expression
        if not return_std:
            return expression(X)
        uncertainty = self.pareto_front_.candidate_of(expression).uncertainty
        if uncertainty is None:
            raise ValueError(
                "return_std=True needs the uncertainties, without which this fit was saved; fit again."
            )
        return expression(X), uncertainty.of_predictions(expression, X, self.loss_ == "relative")

    def _candidate(self, index: int | str) -> Candidate:
        front = self.pareto_front_
        if isinstance(index, str):
            return front[front.select(index)]
        if not isinstance(index, Integral) or not -len(front) <= index < len(front):
            raise ValueError(
                f"index={index!r} is no candidate; give a number from 0 to {len(front) - 1}, or the name of "
                f"a rule: {', '.join(SELECTIONS)}."
            )
        return front[int(index)]

    def with_feature_names(self, feature_names: Sequence[str]) -> Self:
        """Return a copy of the fitted estimator whose formulas have other names of the features.

        Parameters
        ----------
        feature_names : sequence of str, of length n_features_in_
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.pareto_front_ = self.pareto_front_.with_feature_names(feature_names)
        other.expression_ = self.expression_.with_feature_names(feature_names)
        return other

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file that `dgsr.load` reads; see `dgsr.saving.save`."""
        check_is_fitted(self)
        saving.save(self, path)

    def report(self, path: str | Path, X: Any = None, y: Any = None, **options: Any) -> None:
        """Write an HTML report of the fit.

        Parameters
        ----------
        path : str or Path
        X, y : array-like, optional
            Rows to show the candidates on; by default those of the fit, or 1,000 of them if there are more.
        **options
            Further arguments of `dgsr.reporting.write_report`.

        Raises
        ------
        ValueError
            If `X` or `y` is missing, or both are and the estimator was loaded from a file, which has no rows.
        """
        from dgsr.reporting import write_report

        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("Only one of X and y is given; give both, or none for the rows of the fit.")
        if X is None:
            if not hasattr(self, "_rows"):
                raise ValueError("The estimator was loaded from a file, which has no rows; give X and y.")
            X, y, weights = self._rows
            options = {"sample_weight": weights, **options}
        with warnings.catch_warnings():
            # The rows of the fit are kept without the names of their columns.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            write_report(self, path, X, y, **options)

    def _html_repr(self) -> str:
        """Return scikit-learn's picture of the estimator, below the formula and the front if it is fitted."""
        diagram = estimator_html_repr(self)
        if not hasattr(self, "expression_"):
            return diagram
        front = self.pareto_front_
        return (
            f'<div style="font-size: 1.3em; margin: 0.5em 0">{self.expression_.mathml}</div>'
            f"<details open><summary>{len(front)} candidates</summary>"
            f"{front.to_html(front.index_of(self.expression_))}</details>{diagram}"
        )

    @property
    def sympy_expr_(self) -> Any:
        check_is_fitted(self)
        return self.expression_.sympy

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expression_")

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)
