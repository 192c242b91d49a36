"""Smoothers of well-kept libraries: the errors of the rates of change that they give for noisy time series.

The series are those of the kind ``rates`` with noise of 1 and 5%, with all 100 rows of a run and with every
third. Each run and state is smoothed by itself:

- ``differences``: numpy.gradient of the measured states;
- ``savgol``: scipy.signal.savgol_filter, cubics in windows of 11 rows;
- ``spline``: scipy.interpolate.make_smoothing_spline, with generalised cross-validation;
- ``rbf``, ``matern 3/2``, ``matern 5/2``: scikit-learn's GaussianProcessRegressor with this kernel and white
  noise, by maximum marginal likelihood; the last is that of `dgsr.rates`.

An error is the root mean square over the runs, in standard deviations of the true rate; the median is that of
the absolute errors. A rate is covered if its error is below two standard errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import make_smoothing_spline
from scipy.signal import savgol_filter
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel

from _noise.rates import N_RUNS, SYSTEMS, TIMES, simulated

NOISE, STEPS = (0.01, 0.05), (1, 3)
#: What identifies a smoothing in a file of records.
KEY = ("system", "state", "smoother", "noise", "step")
_LENGTHS = (0.05, 100.0)
# Half the distance in time of the differences of predictions, which are derivatives to six digits.
_H = 1e-4

Rate = tuple[np.ndarray, np.ndarray | None]


def process(shape: Kernel) -> Callable[[np.ndarray, np.ndarray], Rate]:
    """Return the smoother of a kernel."""

    def rate(t: np.ndarray, x: np.ndarray) -> Rate:
        kernel = ConstantKernel(1.0, (1e-4, 1e4)) * shape + WhiteKernel(1e-3, (1e-10, 1.0))
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            fitted = GaussianProcessRegressor(kernel).fit(t[:, None], (x - x.mean()) / np.ptp(x))
        n, places = len(t), np.concatenate([t + _H, t - _H])[:, None]
        mean, covariance = fitted.predict(places, return_cov=True)
        covariance -= fitted.kernel_.k2.noise_level * np.eye(2 * n)
        difference = np.hstack([np.eye(n), -np.eye(n)]) * np.ptp(x) / (2.0 * _H)
        variances = np.einsum("ij,jk,ik->i", difference, covariance, difference)
        return difference @ mean, np.sqrt(np.maximum(variances, 0.0))

    return rate


def savgol(t: np.ndarray, x: np.ndarray) -> Rate:
    return savgol_filter(x, 11, 3, deriv=1, delta=t[1] - t[0]), None


SMOOTHERS: dict[str, Callable[[np.ndarray, np.ndarray], Rate]] = {
    "differences": lambda t, x: (np.gradient(x, t), None),
    "savgol": savgol,
    "spline": lambda t, x: (make_smoothing_spline(t, x).derivative()(t), None),
    "rbf": process(RBF(1.0, _LENGTHS)),
    "matern 3/2": process(Matern(1.0, _LENGTHS, nu=1.5)),
    "matern 5/2": process(Matern(1.0, _LENGTHS, nu=2.5)),
}


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The rates of change of one state by one smoother, for `record_all`."""

    system: str
    state: int
    smoother: str
    noise: float
    step: int
    seed: int

    def identity(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in KEY}

    def record(self) -> dict[str, Any]:
        """Smooth; return the errors of the rates, and the share that is covered, None without errors."""
        rng = np.random.default_rng((self.seed, SYSTEMS.index(self.system)))
        states, changes = (part[:, self.state] for part in simulated(self.system))
        noisy = states + self.noise * states.std() * rng.normal(size=len(states))
        errors, covered = [], []
        for x, truth in zip(np.split(noisy, N_RUNS), np.split(changes, N_RUNS)):
            rate, deviation = SMOOTHERS[self.smoother](TIMES[:: self.step], x[:: self.step])
            errors.append(rate - truth[:: self.step])
            if deviation is not None:
                covered.append(np.abs(errors[-1]) < 2.0 * deviation)
        return {
            **self.identity(),
            "error": float(np.sqrt(np.mean(np.square(errors))) / changes.std()),
            "median": float(np.median(np.abs(errors)) / changes.std()),
            "covered": float(np.mean(covered)) if covered else None,
        }


def runs(seed: int) -> list[Smoothing]:
    """Return the smoothings of all states by all smoothers."""
    return [
        Smoothing(system, state, smoother, noise, step, seed)
        for noise in NOISE
        for step in STEPS
        for smoother in SMOOTHERS
        for system in SYSTEMS
        for state in (0, 1)
    ]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print the geometric means of the errors, and of the coverage the mean and the least."""
    for noise, step in dict.fromkeys((r["noise"], r["step"]) for r in records):
        print(f"noise {noise:.0%}, every row" if step == 1 else f"noise {noise:.0%}, every {step}rd row")
        for smoother in SMOOTHERS:
            own = [r for r in records if (r["noise"], r["step"], r["smoother"]) == (noise, step, smoother)]
            error, median = (np.exp(np.mean(np.log([r[key] for r in own]))) for key in ("error", "median"))
            covered = [r["covered"] for r in own if r["covered"] is not None]
            said = f", covered {np.mean(covered):.1%}, {min(covered):.0%} at least" if covered else ""
            print(f"  {smoother:>11}: error {error:.3f}, median {median:.4f}{said}")
