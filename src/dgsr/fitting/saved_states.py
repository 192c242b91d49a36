"""The check, before loading, that the content of a checkpoint can be the state of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library

# Names of the sets of programs in the state of a search.
_PROGRAMS = ("archive", "queue", "generation", "evolved", "long")
# Names of the numbers in an entry of the history.
_ENTRY = {
    *("evaluations", "seconds", "best_nmse", "mean_reward", "best_reward", "invalid", "restarts"),
    "refinements",
}
# Largest integer of the kernels.
_LARGEST = np.iinfo(np.int64).max


def check_state(
    state: Any, fresh: dict[str, Any], library: Library, n_islands: int, form: Form | None
) -> None:
    """Raise ValueError if a state cannot be one of a search whose state at its beginning is `fresh`.

    In a search with a form the programs of the rounds are forests, and those of the archive of the form.
    """
    alone = {name: value for name, value in fresh.items() if name != "islands"}
    islands: Any = state.get("islands", {})
    of_whole = {name: value for name, value in state.items() if name != "islands"}
    if ("islands" in state) != ("islands" in fresh) or not isinstance(islands, dict):
        raise ValueError("it has other entries in a state")
    if set(islands) not in (set(), {str(number) for number in range(n_islands)}):
        raise ValueError(f"it has {len(islands)} islands")
    for one in (of_whole, *islands.values()):
        _check_like(one, alone, "")
        for entry in one["history"]:
            _check_like(entry, dict.fromkeys(_ENTRY, math.inf), "/history")
        for name in _PROGRAMS:
            are_forests = form is not None and name not in ("archive", "long")
            n_trees = form.n_trees if form is not None and are_forests else 1
            _check_programs(one[name], library, has_free_places=name == "archive", n_trees=n_trees)
            if form is not None:
                _check_form(one[name], form, are_forests)


def _check_like(state: Any, fresh: Any, path: str) -> None:
    """Raise ValueError if a state has other names, types, shapes or ranges than a fresh one."""
    if isinstance(fresh, dict):
        if not isinstance(state, dict) or set(state) != set(fresh):
            raise ValueError(f"it has other entries in {path or 'a state'}")
        for key, value in fresh.items():
            _check_like(state[key], value, f"{path}/{key}")
    elif isinstance(fresh, np.ndarray):
        _check_array(state, fresh, path)
    elif isinstance(fresh, list):
        if not isinstance(state, list):
            raise ValueError(f"{path} is no list")
    elif fresh is None:
        if state is not None and (path != "/refinement/baseline" or not _is_number(state, math.inf)):
            raise ValueError(f"{path} is of type {type(state).__name__}")
    elif not _is_number(state, fresh):
        raise ValueError(f"{path} is {state!r}"[:100])
    elif path == "/tolerance" and state != fresh:  # a setting, which the search does not change
        raise ValueError(f"{path} is {state}, and not {fresh}")


def _is_number(value: Any, fresh: float) -> bool:
    """Return whether a value may follow a fresh one, which is a count, a loss or a number of seconds."""
    if type(fresh) is int:
        return type(value) is int and 0 <= value <= _LARGEST
    is_number = type(value) in (int, float) and value >= 0
    return is_number and (value <= _LARGEST or (math.isinf(fresh) and type(value) is float))


def _check_array(state: Any, fresh: np.ndarray, path: str) -> None:
    """Raise ValueError if an array has another type or shape than a fresh one, or impossible values."""
    shape = tuple(getattr(state, "shape", ("none",)))
    # In all sets but the archive the number of programs changes from round to round.
    is_set = path.split("/")[1] in _PROGRAMS[1:]
    if not isinstance(state, np.ndarray) or state.ndim != fresh.ndim:
        raise ValueError(f"{path} is of shape {shape}")
    if (shape[1:] != fresh.shape[1:] if is_set else shape != fresh.shape) or state.dtype != fresh.dtype:
        raise ValueError(f"{path} is of shape {shape} and type {state.dtype}")
    if path == "/random_state" and not state.any():
        raise ValueError(f"{path} is 0, from which no random number follows")
    if path.startswith("/refinement") and not np.isfinite(state).all():
        raise ValueError(f"{path} is not finite")
    if path.startswith("/refinement/optimizer") and not path.endswith("/exp_avg") and not (state >= 0).all():
        raise ValueError(f"{path} is negative")


def _check_form(arrays: Mapping[str, np.ndarray], form: Form, are_forests: bool) -> None:
    """Raise ValueError if programs are not of a form, or are no forests of its functions."""
    tokens, lengths = arrays["tokens"], arrays["lengths"]
    if not are_forests:
        used = np.flatnonzero(lengths)
        constants = arrays["constants"]
        if any(form.read(tokens[i, : lengths[i]], constants[i]) is None for i in used):
            raise ValueError("it has programs of another form")
        return
    of_function = form.functions_of(tokens, lengths)
    arguments = tokens - form.tokens.first_variable
    most = np.array([*form.n_arguments, 0])[np.maximum(of_function, -1)]
    is_outside = (of_function < 0) & (of_function >= -form.n_outside)
    if ((of_function >= 0) & (arguments >= most)).any() or (tokens[is_outside] != form.tokens.constant).any():
        raise ValueError("it has functions of other arguments")


def _check_programs(
    arrays: Mapping[str, np.ndarray], library: Library, has_free_places: bool, n_trees: int
) -> None:
    """Raise ValueError if arrays do not hold programs of a library, with their losses and constants.

    Each program has `n_trees` trees, one after the other.
    """
    tokens, lengths, nmse = arrays["tokens"], arrays["lengths"], arrays["nmse"]
    constants, arity = arrays["constants"], library.table.arity
    n, width = tokens.shape
    is_empty = lengths == 0
    if not (len(nmse) == len(lengths) == len(constants) == n):
        raise ValueError("it has arrays of different lengths")
    if n and (tokens.min() < 0 or tokens.max() >= len(arity) or lengths.min() < 0 or lengths.max() > width):
        raise ValueError("it has programs of unknown tokens")
    if not np.isinf(nmse[is_empty]).all() or (is_empty.any() and not has_free_places):
        raise ValueError("it has programs without tokens")
    if not (nmse >= 0.0).all():
        raise ValueError("it has losses that are negative or no numbers")
    # Number of subprograms that are still missing after each token of a program.
    open_nodes = n_trees + np.cumsum(arity[tokens] - 1, axis=1)
    inside = np.arange(width) < lengths[:, None] - 1
    ends = np.take_along_axis(open_nodes, np.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
    if not ((open_nodes > 0) | ~inside).all() or not (ends[~is_empty] == 0).all():
        raise ValueError("it has programs that are none")
    n_constants = Population(library, tokens, lengths, constants).is_constant.sum(axis=1)
    if n_constants.max(initial=0) > constants.shape[1]:
        raise ValueError("it has programs without their constants")
    is_used = np.arange(constants.shape[1]) < n_constants[:, None]
    if not (np.isfinite(constants) | ~is_used)[np.isfinite(nmse)].all():
        raise ValueError("it has constants that are not finite")
