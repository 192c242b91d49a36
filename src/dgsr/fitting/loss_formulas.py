"""Losses that are written as formulas, such as ``"abs(target - prediction)"``."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import Tree, leaves

#: The losses that have a name and are not written as a formula.
LOSSES = ("auto", "squared", "relative", "absolute", "huber")

#: Names of the variables in the formula of a loss, which must have both.
NAMES = ("target", "prediction")


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

    Raises ValueError if the text is no formula of target and prediction; the message names the place in it.

    Parameters
    ----------
    y, predicted : ndarray of shape (n_rows,)
        Targets and predictions.

    Returns
    -------
    ndarray of shape (n_rows,)
        Not finite where the formula has no value.
    """
    return evaluate(_tree_of(text), dict(zip(NAMES, (y, predicted), strict=True)))
