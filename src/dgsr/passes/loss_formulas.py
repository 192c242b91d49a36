"""Losses that are written as formulas, such as ``"abs(target - prediction)"``."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dgsr.expressions.evaluation import evaluate
from dgsr.expressions.syntax import parse
from dgsr.expressions.trees import Tree, leaves

#: The losses with a name, which no formula is.
LOSSES = ("auto", "squared", "relative", "absolute", "huber")

#: Names that the formula of a loss is over, both of which it must have.
NAMES = ("target", "prediction")

# Share of the usual loss of a row that is far off below which a loss is 0 up to rounding.
_ROUNDING = 1e-6


@lru_cache(maxsize=8)
def _tree_of(text: str) -> Tree:
    """Return the tree of a loss; ValueError if it cannot be read, or lacks one of its two names."""
    known = f"is neither one of {', '.join(LOSSES)} nor a formula of target and prediction"
    try:
        tree = parse(text, NAMES)
    except ValueError as error:
        raise ValueError(f"loss={text!r} {known}. {error}") from error
    missing = [name for name in NAMES if name not in leaves(tree)]
    if missing:
        raise ValueError(
            f"loss={text!r} {known}: it lacks {missing[0]}; write one such as 'abs(target - prediction)'."
        )
    return tree


def values_of(text: str, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the values of the formula of a loss.

    Parameters
    ----------
    text : str
    y, predicted : ndarray of shape (n_rows,)
        Targets and predictions.

    Returns
    -------
    ndarray of shape (n_rows,)
        Not finite where the formula has no value.

    Raises
    ------
    ValueError
        If the text is no formula of target and prediction; the message names the place in it.
    """
    return evaluate(_tree_of(text), dict(zip(NAMES, (y, predicted), strict=True)))


def check_formula(text: str, y: np.ndarray) -> None:
    """Raise ValueError if a formula is no loss on some targets.

    A loss is 0 where the prediction is the target, and not negative elsewhere. It is tried one standard
    deviation off, where it may have no value.

    Parameters
    ----------
    text : str
    y : ndarray of shape (n_rows,)
        Targets; they must vary.
    """
    at = values_of(text, y, y)
    without = np.flatnonzero(~np.isfinite(at))
    if len(without):
        raise ValueError(
            f"loss={text!r} has no value in {len(without)} rows where the prediction is the target, in the "
            f"first of which y is {y[without[0]]:g}; leave these rows out, or write another loss."
        )
    far = np.concatenate([values_of(text, y, y + side * y.std()) for side in (-1.0, 1.0)])
    far = far[np.isfinite(far)]
    usual = float(np.median(np.abs(far))) if len(far) else 0.0
    largest = float(np.abs(at).max())
    if largest > _ROUNDING * usual:
        raise ValueError(
            f"loss={text!r} must be 0 where the prediction is the target, and is up to {largest:g} there; "
            "subtract what it is there."
        )
    if (far < -_ROUNDING * usual).any():
        raise ValueError(
            f"loss={text!r} is negative for some predictions; write its size, as abs(...), or its square."
        )
