"""A fit of several targets: one fit for each, with an equal share of the budget."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dgsr.data.table import Table
from dgsr.estimator.fitted import FittedRegressor
from dgsr.estimator.one_target import fit_one
from dgsr.estimator.parameters import Units
from dgsr.expressions.programs.units import check_has_order
from dgsr.fitting.beginning import OTHER_DATA, Last
from dgsr.reporting.warning import warnings_about

_Estimator = TypeVar("_Estimator", bound=FittedRegressor)

# Attributes of the columns of X, which are the same for all targets.
_OF_COLUMNS = {"n_features_in_", "feature_names_in_", "groups_", "group_column_"}


def fit_each(estimator: _Estimator, table: Table, last: Last) -> list[_Estimator]:
    """Return an estimator with the attributes of `estimator` for every column of the targets, fitted to it.

    All have the same random state, so that the result of a column depends neither on other columns nor on
    their order. Warnings name their column.

    Raises ValueError if the last fit had another number of columns, if the units are not as many as the
    columns or have no order, or if a column cannot be fitted, which a note of the error names.
    """
    parameters, n_outputs = estimator.get_params(deep=False), table.y.shape[1]
    if last is None:
        last = [None] * n_outputs
    if not isinstance(last, list) or len(last) != n_outputs:
        raise ValueError(OTHER_DATA)
    units = _of_targets(parameters["units"])
    check_has_order(units)
    if units is not None and len(units) != n_outputs:
        raise ValueError(
            f"The units of the target, {[*units]!r}, have {len(units)} entries for {n_outputs} columns of y; "
            "give one for each, None where it is unknown."
        )
    random_state = parameters["random_state"]
    fitted: list[_Estimator] = []
    for i in range(n_outputs):
        own = {**_share(parameters, i, n_outputs), "random_state": random_state}
        try:
            with warnings_about(f"column {i} of y"):
                one = type(estimator)(**own)
                for name in _OF_COLUMNS & set(vars(estimator)):
                    setattr(one, name, getattr(estimator, name))
                target = np.ascontiguousarray(table.y[:, i])
                fit_one(one, table._replace(y=target), last[i], time.perf_counter(), n_outputs)
                fitted.append(one)
        except Exception as error:
            error.add_note(f"This happened in the fit of column {i} of y.")
            raise
        if fitted[-1].random_state_ is not None:
            random_state = fitted[-1].random_state_  # drawn in the first fit if none is given
    return fitted


def _of_targets(units: Any) -> Sequence[str | None] | None:
    """Return the units of several targets, None if there is one or none."""
    of_target = units.target if isinstance(units, Units) else None
    return None if of_target is None or isinstance(of_target, str) else of_target


def _share(parameters: Mapping[str, Any], i: int, n_outputs: int) -> dict[str, Any]:
    """Return the parameters of output `i`, with its share of the budget, its unit and its checkpoint."""
    own = {**parameters, "max_evaluations": max(1, parameters["max_evaluations"] // n_outputs)}
    units = _of_targets(parameters["units"])
    if units is not None:
        own["units"] = replace(parameters["units"], target=units[i])
    if parameters["max_time"] is not None:
        own["max_time"] = parameters["max_time"] / n_outputs
    if parameters["checkpoint"] is not None:
        path = Path(parameters["checkpoint"])
        own["checkpoint"] = path.with_name(f"{path.name}.{i}")
    return own
