"""How a fitted estimator is shown: as text, in a notebook, as a report, and as a plot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from dgsr.estimator.fitted import FittedRegressor
from dgsr.finders import find_symmetries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.metrics import PredictionErrorDisplay


class ShownRegressor(FittedRegressor):
    """A fitted regressor that shows what was found."""

    @np.errstate(all="ignore")
    def report(
        self, path: str | Path, X: Any = None, y: Any = None, groups: Any = None, **options: Any
    ) -> None:
        """Write an HTML report of the fit, with several outputs of each in one file.

        Parameters
        ----------
        path : str or Path
        X, y : array-like, optional
            Rows on which the candidates are shown; by default those of the fit, at most 1,000 of them.
        groups : array-like, optional
            Labels of the groups of these rows, if `fit` was given them apart from `X`.
        **options
            Further arguments of `dgsr.reporting.write_report`. With several outputs `target` is as in `save`.

        Raises
        ------
        ValueError
            If only one of `X` and `y` is given, if both are missing and the estimator comes from a file or a
            pickle, which have no rows.
        """
        from dgsr.reporting import write_report
        from dgsr.reporting.several import write_reports

        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            options["target"] = self._target_names(options.get("target", "y"))
            write_reports(self.estimators_, path, X, y, groups=groups, **options)
            return
        if "target" in options:  # the name of a column may be a number, and that of a series None
            options["target"] = "y" if options["target"] is None else str(options["target"])
        if self._are_own_rows(X, y):
            X, y, weights, indices = self._rows
            outliers = np.flatnonzero(np.isin(indices, self.outliers_))
            options = {"sample_weight": weights, "outliers": outliers, **options}
        else:
            X = self._with_group_column(X, groups)
        if options.get("test") is not None:
            options["test"] = self._with_group_column(options["test"][0]), *options["test"][1:]
        with warnings.catch_warnings():
            # The stored rows of the fit have no names of columns.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            write_report(self, path, X, y, **options)

    def _symmetries_of(self, X: np.ndarray, y: np.ndarray, target: str) -> list[str]:
        """Return the symmetries of rows as texts, for the report, which cannot import finders."""
        return [str(found) for found in find_symmetries(X, y, self._feature_names(), target)]

    @np.errstate(all="ignore")
    def plot(
        self, X: Any = None, y: Any = None, *, groups: Any = None, ax: Axes | None = None
    ) -> PredictionErrorDisplay:
        """Plot measured against predicted values of at most 1,000 rows; needs matplotlib.

        `pareto_front_.plot` plots the front, and `dgsr.reporting.displays.SearchHistoryDisplay` the search.

        Parameters
        ----------
        X, y : array-like, optional
            Rows to predict; by default those of the fit.
        groups : array-like, optional
            Labels of the groups of these rows, if `fit` was given them apart from `X`.
        ax : matplotlib Axes, optional
            Where to plot; by default on a new figure.

        Returns
        -------
        sklearn.metrics.PredictionErrorDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there are no rows, as for `report`, or the fit has several outputs.
        """
        from dgsr.pareto.display import check_one_output
        from dgsr.reporting.displays import plot_predictions

        check_one_output(self)
        if self._are_own_rows(X, y):
            X, y, *_ = self._rows
            return plot_predictions(y, self.expression_(X), ax=ax)
        y, predicted = column_or_1d(y, dtype=np.float64), self.predict(X, groups=groups)
        check_consistent_length(y, predicted)
        return plot_predictions(y, predicted, ax=ax)

    def _are_own_rows(self, X: Any, y: Any) -> bool:
        """Return whether no rows are given, so that those of the fit are used; ValueError if it has none."""
        if (X is None) != (y is None):
            raise ValueError("Only one of X and y is given; give both, or none for the rows of the fit.")
        if X is None and not hasattr(self, "_rows"):
            raise ValueError(
                "The estimator comes from a file, a pickle or a copy, which have no rows; give X and y."
            )
        return X is None

    def __str__(self) -> str:
        """Return the formula of every output, one on a line; before a fit the parameters."""
        if not hasattr(self, "pareto_front_"):
            return repr(self)
        return "\n".join(str(one.expression_) for one in getattr(self, "estimators_", [self]))

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram of the estimator, after the formulas and fronts if it is fitted."""
        fits = getattr(self, "estimators_", [self]) if hasattr(self, "pareto_front_") else []
        formulas = "".join(
            f'<div style="font-size: 1.3em; margin: 0.5em 0">{one.expression_.mathml}</div>'
            f"<details open><summary>{len(one.pareto_front_)} candidates</summary>"
            f"{one.pareto_front_.to_html()}</details>"
            for one in fits
        )
        return f"{formulas}{estimator_html_repr(self)}"

    def _sk_visual_block_(self) -> Any:
        """Return the box of the estimator in scikit-learn's diagrams, with the formula below its name."""
        # The class is not public in scikit-learn; if the import fails, the box has no formula.
        from sklearn.utils._repr_html.estimator import _VisualBlock

        formulas = getattr(self, "expression_", [])
        formulas = formulas if isinstance(formulas, list) else [formulas]
        return _VisualBlock(
            "single",
            self,
            names=type(self).__name__,
            name_details=repr(self),
            name_caption="; ".join(formula.shortened().text for formula in formulas) or None,
        )
