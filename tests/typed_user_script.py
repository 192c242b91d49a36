"""What a user's type checker knows of a fit: `nox -s types` checks this script by `mypy --strict`.

A comment "type: ignore" that nothing needs is an error there, so that the misspelt names have to be noticed.
"""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import dgsr
from dgsr import DGSRRegressor, Expression, Library
from dgsr.pareto import Candidate, ParetoFront

X = np.random.default_rng(0).uniform(1, 5, size=(50, 2))
y = X[:, 0] * X[:, 1]

model = DGSRRegressor("koza", max_evaluations=1e4, random_state=0)
assert_type(model.fit(X, y), DGSRRegressor)
assert_type(DGSRRegressor("koza").fit(X, y).predict(X), NDArray[np.float64])
assert_type(model.predict(X, return_std=True), tuple[NDArray[np.float64], NDArray[np.float64]])
assert_type(model.score(X, y), float)

assert_type(model.expression_, Expression)
assert_type(model.expression_.text, str)
assert_type(model.pareto_front_, ParetoFront)
assert_type(model.pareto_front_[:1], ParetoFront)
assert_type(model.pareto_front_[0], Candidate)
assert_type([candidate.loss for candidate in model.pareto_front_], list[float])
assert_type(model.history_, list[dict[str, float]])
assert_type(model.n_evaluations_, int)
assert_type(model.random_state_, int | None)
assert_type(model.stop_reason_, str)
assert_type(model.loss_, str)
assert_type(model.generator_, str)
assert_type(model.library_, Library)
assert_type(DGSRRegressor("koza").fit(X, X).estimators_, list[DGSRRegressor])

model.save("fit.dgsr")
assert_type(dgsr.load("fit.dgsr").predict(X), NDArray[np.float64])


def misspelt() -> None:
    dgsr.DGSRRegresor()  # type: ignore[attr-defined]
    DGSRRegressor(max_evaluation=1_000)  # type: ignore[call-arg]
    model.predict(X, return_sd=True)  # type: ignore[call-overload]
