"""The controls of the generator are fitted as methods of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from dgsr.benchmarking import METHODS
from dgsr.benchmarking.controls import CONTROLS


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_is_fitted_in_place_of_the_generator(control, monkeypatch):
    made, make_control = [], CONTROLS[control]
    monkeypatch.setitem(CONTROLS, control, lambda *given: made.append(make_control(*given)) or made[-1])
    X = np.random.default_rng(0).uniform(1.0, 2.0, (30, 2))
    make = METHODS[control]
    model = make(library="koza", max_evaluations=150, random_state=0)
    for _ in range(2):  # a second fit forgets the first, but not which control it is
        model.fit(X, X[:, 0] * np.sin(X[:, 1]))
        assert 0 < model.n_evaluations_ <= 150
        assert model.generator_ == "koza-d12"
    assert len(made) == 2
