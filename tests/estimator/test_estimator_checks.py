"""scikit-learn's own checks of an estimator, all of them, without an expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from searches import flat_regressor

# Whether a formula for random numbers has as many constants as there are rows depends on the processor.
pytestmark = pytest.mark.filterwarnings("ignore:The chosen formula has constants that single rows determine")

# Fits to the checks' data: R2 is above 0.5 from 50 evaluations on, and a single one need not be finite.
BUDGET = {"max_evaluations": 200, "batch_size": 50, "random_state": 0}
# Fits that are as cheap as they can be: those of the budget above look up laws before the search.
QUICK = {"max_evaluations": 50, "batch_size": 50, "max_length": 10, "look_up": False, "random_state": 0}


@pytest.mark.search
@parametrize_with_checks([flat_regressor(generator=None, **QUICK)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.search
@parametrize_with_checks([flat_regressor(**QUICK)])
def test_the_checks_pass_with_the_default_generator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        flat_regressor(generator=None, **BUDGET),
        flat_regressor(generator="untrained", library="koza-const", gp_generations=2, **BUDGET),
    ]
)
def test_the_checks_pass_without_a_generator_and_with_an_untrained_one(estimator, check):
    check(estimator)
