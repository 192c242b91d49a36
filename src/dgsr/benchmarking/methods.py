"""The methods that are compared, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any


def _dgsr_regressor(**parameters):
    from dgsr.estimator.parameters import grouped
    from dgsr.estimator.regressor import DGSRRegressor

    return DGSRRegressor(**grouped(parameters))


def _control_regressor(control, **parameters):
    from dgsr.benchmarking.controls import control_regressor

    return control_regressor(control, **parameters)


def _peer(name, **parameters):
    from dgsr.benchmarking import peers

    return getattr(peers, name)(**parameters)


# Parameters of the method `generator`, which the ablations change.
_GENERATOR: dict[str, Any] = {"generator": "auto", "look_up": False}

#: The methods by name: functions that make an unfitted regressor from `library`, `max_evaluations`,
#: `max_length`, `random_state` and the options of the run. The regressor has `fit` and `predict`, and after
#: the fit `expression_`, `pareto_front_`, `n_evaluations_` and `stop_reason_`. In the pairs ``generator`` and
#: ``gp``, without exact search, and ``dgsr`` and ``exact``, with it, only the first has a generator. The
#: controls of ``generator`` are ``untrained``, the paper's network with random weights, which has no guide
#: and is refined, and those of `dgsr.benchmarking.controls`. ``pqt``, ``vpg`` and ``risk-seeking`` are
#: ``generator`` with a decoder refined by these objectives, and ``sampled`` has neither evolution nor
#: refinement. The peers ``operon`` and ``operon-selected`` of `dgsr.benchmarking.peers` need `PACKAGES`.
METHODS: dict[str, Callable[..., Any]] = {
    "dgsr": partial(_dgsr_regressor, generator="auto"),
    "generator": partial(_dgsr_regressor, **_GENERATOR),
    "misled": partial(_control_regressor, "misled", look_up=False),
    "blind": partial(_control_regressor, "blind", look_up=False),
    "features": partial(_control_regressor, "features", look_up=False),
    "guide-alone": partial(_control_regressor, "guide-alone", look_up=False, refine=False),
    "samples-alone": partial(_control_regressor, "samples-alone", look_up=False, refine=False),
    "unrefined": partial(_dgsr_regressor, **_GENERATOR, refine=False),
    "untrained": partial(_dgsr_regressor, generator="untrained", look_up=False),
    "pqt": partial(_dgsr_regressor, **_GENERATOR, refine=True),
    "vpg": partial(_dgsr_regressor, **_GENERATOR, refine=True, objective="vpg"),
    "risk-seeking": partial(_dgsr_regressor, **_GENERATOR, refine=True, objective="risk-seeking"),
    "sampled": partial(_dgsr_regressor, **_GENERATOR, refine=False, gp_generations=0),
    "gp": partial(_dgsr_regressor, generator=None, look_up=False),
    "exact": partial(_dgsr_regressor, generator=None),
    "operon": partial(_peer, "OperonRegressor"),
    "operon-selected": partial(_peer, "OperonSelectedRegressor"),
}

#: The package of each peer, under the name by which pip installs it.
PACKAGES = {"operon": "pyoperon", "operon-selected": "pyoperon"}


def check_methods(methods: Sequence[str]) -> None:
    """Raise ValueError if a method is unknown, or needs a package that is not installed."""
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise ValueError(f"methods={unknown} are unknown; choose from {', '.join(METHODS)}.")
    for package in (PACKAGES[method] for method in methods if method in PACKAGES):
        from dgsr.benchmarking.peers import imported

        imported(package)
