"""The methods of a fitted estimator: to predict, choose another formula, and save."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from dgsr.data.checks import check_finite, check_numbers, first_of
from dgsr.data.groups import numbers_of, values_of, with_numbers
from dgsr.estimator import saving
from dgsr.expressions.exports.identifiers import fresh
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.programs.library import Library
from dgsr.pareto import SELECTIONS, ParetoFront
from dgsr.reporting.warning import warn_caller

if TYPE_CHECKING:
    import pandas
    import sympy

    from dgsr.fitting.beginning import Last
    from dgsr.generator.generator import Generator

#: Attributes that are lists if `y` has several columns, with an entry for each column.
_OF_EACH_OUTPUT = (
    *("pareto_front_", "loss_", "outliers_", "n_evaluations_", "n_examined_"),
    *("history_", "stop_reason_", "generator_"),
)


class FittedRegressor(RegressorMixin, BaseEstimator):
    """The methods of a regressor after its fit."""

    # The types are for a fit of one output.
    pareto_front_: ParetoFront
    loss_: str
    outliers_: np.ndarray  # set by `fit`, not by `dgsr.load`
    n_evaluations_: int
    n_examined_: int
    history_: list[dict[str, float]]
    stop_reason_: str
    generator_: str
    estimators_: list[Self]
    library_: Library
    random_state_: int | None
    n_features_in_: int
    groups_: tuple[Hashable, ...] | None = None  # set by a fit with groups
    group_column_: int | None = None
    feature_names_in_: np.ndarray
    target_name_: str  # set by `dgsr.load`
    # Rows of the fit for `report` and `plot`, with targets, weights and indices.
    _rows: tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]
    _last_fit: Last  # with `warm_start`, for the next fit

    @overload
    def predict(
        self,
        X: Any,
        index: int | str | None = None,
        *,
        return_std: Literal[False] = False,
        groups: Any = None,
    ) -> NDArray[np.float64]: ...
    @overload
    def predict(
        self, X: Any, index: int | str | None = None, *, return_std: Literal[True], groups: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    @np.errstate(all="ignore")
    def predict(self, X, index=None, *, return_std=False, groups=None):
        """Evaluate the formula, or the formula of every output.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        index : int or str, optional
            The candidate to evaluate instead of the chosen one: its number in `pareto_front_`, or the name of
            a rule that chooses it (see `selection`). With several outputs it holds for each.
        return_std : bool, default=False
            Whether to return the standard deviation of a new measurement, too.
        groups : array-like of shape (n_samples,), optional
            Labels of the groups of the rows, if `fit` was given them apart from `X`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), or a pair of them
            Values of the formula; not finite where it is undefined. With `return_std`, the standard deviation
            of a new measurement, too, from the residual noise and the uncertainty of the constants, by
            linearisation. The noise is the same in all rows, or in proportion to the formula if the loss is
            of relative errors. With the loss ``"absolute"`` or ``"huber"``, and if ``"auto"`` left outliers
            out, it is the noise of the other rows; with weights or a user's own loss it is that of a row of
            mean weight. The form of the formula is taken as certain.

        Raises
        ------
        ValueError
            If `X` is unusable, if there is no such candidate or rule, or, with `return_std`, if the candidate
            has no uncertainties: `max_time` was over before they were known, or its file is of an early
            version.
        """
        check_is_fitted(self)
        X, numbers = self._with_group_numbers(X, groups)
        check_numbers(X, "X")
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
        check_finite(X, "X", getattr(self, "feature_names_in_", ()))
        if numbers is not None:
            X = np.column_stack([X, numbers])
        if not hasattr(self, "estimators_"):
            return self._predicted(X, index, return_std)
        of_each = [one._predicted(X, index, return_std) for one in self.estimators_]
        if not return_std:
            return np.column_stack(of_each)
        values, deviations = zip(*of_each)
        return np.column_stack(values), np.column_stack(deviations)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the coefficient of determination R2 of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, if they were apart from X in the fit.

        Returns
        -------
        float
            R2 of the predictions; with several outputs, the mean of their R2.

        Raises
        ------
        ValueError
            If `X` is unusable, or the formula is undefined in some row.
        """
        from sklearn.metrics import r2_score  # here, since it takes a third of a second

        predicted = self.predict(X) if groups is None else self.predict(X, groups=groups)
        n_undefined = np.sum(~np.isfinite(predicted.reshape(len(predicted), -1)).all(axis=1))
        if n_undefined > 0:
            raise ValueError(
                f"The formula has no finite value in {n_undefined} of {len(predicted)} rows. Leave "
                "these out, or take another candidate: predict(X, index=0) evaluates the shortest."
            )
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _as_used(self, generator: Generator, seed: int) -> Generator:
        """Return what the search has in the place of a generator, for controls that override this."""
        return generator

    def _with_group_numbers(self, X: Any, groups: Any) -> tuple[Any, np.ndarray | None]:
        """Return X with numbers in its column of groups, and the numbers of groups that are apart from it.

        A warning says which groups were not in the fit, if ``config["new_groups"]`` does not raise an error.
        """
        labels, column = self.groups_, self.group_column_
        is_apart = column == self.n_features_in_
        if groups is not None and not is_apart:
            raise ValueError("groups are given, but the fit had none apart from X; leave them out.")
        if labels is None or column is None:
            return X, None
        if not is_apart:  # before the column is read, which may be another one
            _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
        given = groups if is_apart else values_of(X, column)
        numbers = np.full(np.shape(X)[0], -1.0) if given is None else numbers_of(given, labels)
        check_consistent_length(X, numbers)
        new = np.flatnonzero(numbers < 0)
        if len(new):
            found = "groups are missing"
            if given is not None:
                other = first_of(
                    [repr(one) for one in dict.fromkeys(np.asarray(given, dtype=object)[new].tolist())]
                )
                found = f"{len(new)} rows are of groups that were not in the fit, {other}"
            if ((self.config or {}).get("new_groups", "mean")) == "raise":
                raise ValueError(f"{found}; config={{'new_groups': 'mean'}} predicts them by mean constants.")
            warn_caller(f"{found}: they are predicted by the means of the constants over the groups.")
        return (X, numbers) if is_apart else (with_numbers(X, column, numbers), None)

    def _with_group_column(self, X: Any, groups: Any = None) -> Any:
        """Return X with the numbers of the groups, in a further column where they are apart from it."""
        X, numbers = self._with_group_numbers(X, groups)
        return X if numbers is None else np.column_stack([X, numbers])

    def _predicted(self, X: np.ndarray, index: int | str | None, return_std: bool) -> Any:
        candidate = self.pareto_front_[self._number(index)]
        expression, uncertainty = candidate.expression, candidate.uncertainty
        if not return_std:
            return expression(X)
        if uncertainty is None:
            raise ValueError(
                "return_std=True needs uncertainties, which this candidate lacks, because max_time was over "
                "before they were known, or its file is of an early version; fit again, with more time."
            )
        return expression(X), uncertainty.of_predictions(expression, X, self.loss_ == "relative")

    def _number(self, index: int | str | None) -> int:
        """Return the number of a candidate from its number or a rule, that of the chosen one for None."""
        front = self.pareto_front_
        if isinstance(index, str):
            return front.select(index)
        index = front.chosen if index is None else index
        if not isinstance(index, Integral) or not -len(front) <= index < len(front):
            raise ValueError(
                f"index={index!r} is no candidate; give a number from 0 to {len(front) - 1}, or the name of "
                f"a rule: {', '.join(SELECTIONS)}."
            )
        return int(index) % len(front)

    def choose(self, index: int | str) -> Self:
        """Make another candidate the one that predicts, and that `expression_` and `save` give.

        Parameters
        ----------
        index : int or str
            Its number in `pareto_front_`, or the name of a rule that chooses it (see `selection`). With
            several outputs it holds for each.

        Returns
        -------
        DGSRRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If there is no such candidate or rule.
        """
        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            self._take_outputs([one.choose(index) for one in self.estimators_])
        else:
            self.pareto_front_ = self.pareto_front_.with_chosen(self._number(index))
        return self

    def with_feature_names(self, feature_names: Sequence[str]) -> Self:
        """Return a copy of the fitted estimator whose formulas have other names of the features.

        If the table of the fit had names, the copy predicts for tables with the new ones.

        Parameters
        ----------
        feature_names : sequence of str, of length n_features_in_

        Raises
        ------
        ValueError
            If there are too few or too many names, or a name occurs twice.
        """
        check_is_fitted(self)
        feature_names = [*feature_names]
        if len(feature_names) != self.n_features_in_:
            raise ValueError(
                f"feature_names has {len(feature_names)} names; the fit has {self.n_features_in_} features."
            )
        other = copy.copy(self)
        other.__dict__.update(self.__dict__)  # with the rows of the fit, which a copy omits like a pickle
        if hasattr(self, "estimators_"):
            other._take_outputs([one.with_feature_names(feature_names) for one in self.estimators_])
        else:
            other.pareto_front_ = self.pareto_front_.with_feature_names(
                self._with_name_of_groups(feature_names)
            )
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = np.array(feature_names, dtype=object)
        return other

    @np.errstate(all="ignore")
    def save(self, path: str | Path, *, target: str | Sequence[str] = "y") -> None:
        """Write the fitted estimator to a file that `dgsr.load` reads.

        Parameters
        ----------
        path : str or Path
        target : str or sequence of str, default="y"
            The name of the target. With several outputs a name for each; a single one is numbered, y1, y2
            and so on.
        """
        check_is_fitted(self)
        saving.save(self, path, self._target_names(target))

    @property
    def expression_(self) -> Expression:
        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            return [one.expression_ for one in self.estimators_]  # type: ignore[return-value]
        return self.pareto_front_[self._number(None)].expression

    @expression_.setter
    def expression_(self, value: Any) -> None:
        raise AttributeError(
            "expression_ is the chosen formula of pareto_front_ and cannot be assigned; choose(3) makes "
            "candidate 3 the chosen one, and predict(X, index=3) evaluates it."
        )

    @property
    def sympy_expr_(self) -> sympy.Expr:
        if hasattr(self, "estimators_"):
            return [one.sympy_expr_ for one in self.estimators_]
        return self.expression_.sympy

    @property
    def constants_by_group_(self) -> pandas.DataFrame:
        if hasattr(self, "estimators_"):
            return [one.constants_by_group_ for one in self.estimators_]
        if isinstance(self.expression_, GroupedExpression):
            return self.expression_.constants_by_group()
        import pandas

        return pandas.DataFrame(index=pandas.Index([] if self.groups_ is None else self.groups_))

    def _take_outputs(self, estimators: list[Self]) -> None:
        """Set the attributes of a fit of several outputs from the fit of each."""
        self.estimators_ = estimators
        for name in _OF_EACH_OUTPUT:
            if hasattr(estimators[0], name):  # `outliers_` are not in a file
                setattr(self, name, [getattr(one, name) for one in estimators])
        self.library_ = estimators[0].library_
        drawn = [one.random_state_ for one in estimators if one.random_state_ is not None]
        self.random_state_ = drawn[0] if drawn else None

    def _target_names(self, target: str | Sequence[str]) -> list[str]:
        """Return the names of the targets; ValueError if there are not as many as outputs."""
        if not hasattr(self, "estimators_"):
            return [str(target)]
        n = len(self.estimators_)
        names = [f"{target}{i + 1}" for i in range(n)] if isinstance(target, str) else [*map(str, target)]
        if len(names) != n:
            raise ValueError(f"target={names} has {len(names)} names, not one for each of {n} columns of y.")
        return names

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle, without the rows of the fit, which only `report` and `plot` use."""
        return {name: value for name, value in super().__getstate__().items() if name != "_rows"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "pareto_front_")

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        if names is None and self.group_column_ == self.n_features_in_:
            names = [f"x{i + 1}" for i in range(self.n_features_in_)]
        return None if names is None else self._with_name_of_groups([*names])

    def _with_name_of_groups(self, names: list[str]) -> list[str]:
        """Return names of features with a further one for groups that are no column of X."""
        if self.group_column_ != self.n_features_in_:
            return names
        return [*names, fresh("group", names)]
