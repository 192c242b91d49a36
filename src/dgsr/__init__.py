"""Deep Generative Symbolic Regression: from a table of numbers to a formula."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dgsr.files.version import __version__

if TYPE_CHECKING:
    from dgsr.data.rates import Rates, rates
    from dgsr.estimator.parameters import Units
    from dgsr.estimator.regressor import DGSRRegressor, load
    from dgsr.expressions import Expression, Library, get_library
    from dgsr.finders import find_symmetries
    from dgsr.generator.checkpoints import list_generators, load_generator
    from dgsr.pretraining import pretrain

# Imported when first asked for: torch and numba take a second, `import dgsr` should not.
_ROOMS = {
    "DGSRRegressor": "dgsr.estimator.regressor",
    "Units": "dgsr.estimator.parameters",
    "Expression": "dgsr.expressions",
    "Library": "dgsr.expressions",
    "Rates": "dgsr.data.rates",
    "find_symmetries": "dgsr.finders",
    "get_library": "dgsr.expressions",
    "list_generators": "dgsr.generator.checkpoints",
    "load": "dgsr.estimator.regressor",
    "load_generator": "dgsr.generator.checkpoints",
    "pretrain": "dgsr.pretraining",
    "rates": "dgsr.data.rates",
}

__all__ = [
    "DGSRRegressor",
    "Expression",
    "Library",
    "Rates",
    "Units",
    "__version__",
    "find_symmetries",
    "get_library",
    "list_generators",
    "load",
    "load_generator",
    "pretrain",
    "rates",
]


if not TYPE_CHECKING:  # else a type checker believes every name

    def __getattr__(name: str) -> Any:
        if name not in _ROOMS:
            raise AttributeError(f"module 'dgsr' has no attribute {name!r}")
        return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
