"""exp, sin and cos of the evaluator against 40 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numba import njit

from dgsr.kernels.elementary import exp, fill_sine


@njit(error_model="numpy", fastmath={"contract"})
def run_exp(x, out):
    for i in range(len(x)):
        out[i] = exp(x[i])


@njit(error_model="numpy", fastmath={"contract"})
def run_sin(x, out):
    fill_sine(x, out, len(x), 0)


@njit(error_model="numpy", fastmath={"contract"})
def run_cos(x, out):
    fill_sine(x, out, len(x), 1)


def values(function, x):
    out = np.empty(len(x))
    function(np.asarray(x, dtype=np.float64), out)
    return out


def arguments():
    rng = np.random.default_rng(0)
    return np.concatenate(
        [
            rng.uniform(-10, 10, 1000),
            rng.uniform(-700, 700, 500),
            rng.uniform(-1e5, 1e5, 500),
            rng.uniform(-1e12, 1e12, 100),
            np.arange(-500, 500) * np.pi / 2,  # where the reduced argument is almost nothing
            rng.uniform(-1e-3, 1e-3, 200),
        ]
    )


@pytest.mark.parametrize(
    ("function", "exact"),
    [(run_exp, mpmath.exp), (run_sin, mpmath.sin), (run_cos, mpmath.cos)],
    ids=["exp", "sin", "cos"],
)
def test_errors_stay_below_two_units_in_the_last_place(function, exact):
    x = arguments()
    if function is run_exp:
        x = x[np.abs(x) < 700]
    with mpmath.workdps(40):
        errors = [
            float(abs(mpmath.mpf(value) - exact(mpmath.mpf(argument))) / np.spacing(abs(value)))
            for argument, value in zip(x, values(function, x), strict=True)
        ]
    assert max(errors) < 2.0


@pytest.mark.parametrize("function", [run_exp, run_sin, run_cos], ids=["exp", "sin", "cos"])
def test_nothing_comes_of_an_infinite_or_missing_argument(function):
    assert np.isnan(values(function, [np.inf, -np.inf, np.nan])).all()


def test_exp_overflows_to_infinity_and_underflows_to_zero():
    np.testing.assert_array_equal(values(run_exp, [710.0, 1e300, -709.0, -1e300]), [np.inf, np.inf, 0.0, 0.0])
    assert values(run_exp, [0.0])[0] == 1.0
