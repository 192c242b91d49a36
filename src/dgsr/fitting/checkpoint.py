"""The checkpoint of a fit on disk, so that a killed process loses seconds and not a night.

The file is safetensors with a JSON header, and reading it executes nothing. It holds the state of every
search of the fit (`dgsr.search.Search.state_dict`), and texts that identify the fit.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from types import CellType, CodeType
from typing import Any

import numpy as np

from dgsr.data.table import Table
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.files.container import DAMAGE, TEXT, from_json, packed, unpacked
from dgsr.files.version import __version__
from dgsr.files.writing import check_writable, remove_leftovers, write_atomically
from dgsr.fitting.saved_states import check_state
from dgsr.reporting.warning import warn_in_search

_KIND = "dgsr.checkpoint"
# Number of the format, raised when the state of a search changes.
_FORMAT = 11
# Fewest seconds between two writes.
_SECONDS = 3.0
# Parameters that may differ in the fit that continues.
_MAY_CHANGE = ("max_evaluations", "max_time", "warm_start", "checkpoint", "verbose", "callback")
# Levels of nesting up to which the content of a parameter enters its text.
_DEEPEST = 12
# Entries whose texts no message shows, because they are digests or differ from the parameter.
_NOT_SHOWN = ("table", "library", "generator", "selection")

State = dict[str, Any]


class Checkpoint:
    """The file to which a running fit is written, and from which it continues.

    Raises ValueError if the file is no checkpoint, is damaged, or was written by another version of dgsr.
    Raises OSError if the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_writable(path)
        self.states: list[State] = []  # the last state of every search of the fit so far
        self.random_state: int | None = None  # of the fit in the file
        self._identity: dict[str, str] = {}
        self._written = -np.inf
        if self.path.exists() and self.path.stat().st_size > 0:
            self._read()

    def _read(self) -> None:
        mend = "delete it, or name another file"
        try:
            texts, arrays, has_digest = unpacked(self.path)
            header = from_json(texts.get(TEXT, "null"))
            if not isinstance(header, dict) or header.get("kind") != _KIND or not has_digest:
                raise ValueError("it is of another kind")
            version = f"{header['version']} in format {header['format']}"
            self._identity, self.random_state = header["identity"], header["random_state"]
            texts_of = self._identity.values() if isinstance(self._identity, dict) else (None,)
            if not all(type(text) is str for text in texts_of):
                raise ValueError("it does not say of which fit it is")
            if type(self.random_state) is not int or not 0 <= self.random_state < 1 << 32:
                raise ValueError(f"its random_state is {self.random_state}")
            n_states = header["n_states"]
            if type(n_states) is not int or not 0 < n_states <= 10:  # no fit has as many searches
                raise ValueError(f"it has {n_states} searches")
            self.states = [_nested(n, header["plain"], arrays) for n in range(n_states)]
        except DAMAGE as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no checkpoint, or is damaged ({str(error)[:200]}); {mend}."
            ) from error
        if version != f"{__version__} in format {_FORMAT}":
            raise ValueError(
                f"checkpoint={str(self.path)!r} was written by dgsr {version}, and this is {__version__} in "
                f"format {_FORMAT}; {mend}."
            )

    def claim(self, random_state: int, parameters: Mapping[str, Any], table: Table) -> None:
        """Claim the file for a fit, by its settings and its table; ValueError if it holds another one."""
        known = {name: _text(value) for name, value in parameters.items() if name not in _MAY_CHANGE}
        known |= {"random_state": str(random_state), "table": _digest(table)}
        known["selection"] = str(parameters["selection"] == "holdout")  # only this rule holds rows out
        if self.states:
            others = [
                _difference(name, self._identity.get(name), value)
                for name, value in known.items()
                if self._identity.get(name) != value
            ]
            if others:
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of a fit with another {' and '.join(others)}; set "
                    "what it was, delete the file, or name another one."
                )
        remove_leftovers(self.path)
        self.random_state, self._identity = random_state, known

    def check(self, state: State, fresh: State, library: Library, form: Form | None = None) -> None:
        """Raise ValueError if a state cannot be one of a search whose state at its beginning is `fresh`."""
        try:
            check_state(state, fresh, library, int(self._identity["n_jobs"]), form)
        except DAMAGE as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is damaged ({str(error)[:200]}); delete it, or name another "
                "file."
            ) from error

    def write(self, states: Callable[[], list[State]], at_once: bool = False) -> None:
        """Write the states of all searches, unless the last write is recent and `at_once` is False."""
        if not at_once and time.monotonic() - self._written < _SECONDS:
            return
        self.states = states()
        leaves = [leaf for n, state in enumerate(self.states) for leaf in _leaves(state, str(n))]
        arrays = {path: value for path, value in leaves if isinstance(value, np.ndarray)}
        plain = {
            path: value.item() if isinstance(value, np.generic) else value
            for path, value in leaves
            if path not in arrays
        }
        header = {
            "kind": _KIND,
            "version": __version__,
            "format": _FORMAT,
            "random_state": self.random_state,
            "identity": self._identity,
            "n_states": len(self.states),
            "plain": plain,
        }
        try:
            write_atomically(self.path, packed({TEXT: json.dumps(header)}, arrays))
        except OSError as error:
            warn_in_search(f"The search goes on, but its checkpoint is an old one: {error}")
        self._written = time.monotonic()


def _text(value: Any, depth: int = 0) -> str:
    """Return a text that identifies the value of a parameter, the same one in every process."""
    if isinstance(value, Library):
        return json.dumps(value.to_json(), sort_keys=True)
    if hasattr(value, "state_dict"):  # a generator
        return _digest([tensor.detach().cpu().numpy() for tensor in value.state_dict().values()])
    if value is None or isinstance(value, str | bytes | bool | int | float | np.generic | Expression):
        return str(value)
    if depth == _DEEPEST:
        return type(value).__qualname__
    if isinstance(value, CodeType):
        return _text([value.co_code, value.co_names, value.co_consts], depth + 1)
    if isinstance(value, Mapping):
        return str(dict(sorted((str(key), _text(inner, depth + 1)) for key, inner in value.items())))
    if isinstance(value, np.ndarray):
        return _digest([value]) if value.dtype.kind in "biufc" else _text(value.tolist(), depth + 1)
    if isinstance(value, Collection):
        entries = [_text(entry, depth + 1) for entry in value]
        return str(sorted(entries) if isinstance(value, Set) else entries)
    if callable(value):
        return _text_of_callable(value, depth + 1)
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text  # addresses differ between processes


def _text_of_callable(value: Any, depth: int) -> str:
    """Return the name of a callable, with a digest of its code and of the values that it holds.

    Functions that it calls, and those that are no Python code, are identified by their names alone.
    """
    function = getattr(value, "py_func", value)  # the Python function behind one that numba compiled
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if isinstance(function, partial):
        parts = [function.func, function.args, function.keywords]
    elif hasattr(function, "__code__"):
        owner = getattr(function, "__self__", None)  # of a method
        cells = [_content(cell) for cell in function.__closure__ or ()]
        held = [function.__defaults__, function.__kwdefaults__, cells, getattr(owner, "__dict__", None)]
        parts = [function.__code__, *held]
    elif hasattr(type(function).__call__, "__code__") and not isinstance(function, type):
        parts = [type(function).__call__, getattr(function, "__dict__", None)]
    else:
        return name
    return f"{name} {hashlib.sha256(_text(parts, depth).encode()).hexdigest()[:16]}"


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _difference(name: str, saved: str | None, own: str) -> str:
    """Return the name of a parameter, with both values if they are short and may be shown."""
    is_shown = name not in _NOT_SHOWN and saved is not None and max(len(saved), len(own)) <= 40
    return f"{name} ({saved} in the file, {own} now)" if is_shown else name


def _digest(arrays: Sequence[np.ndarray | None]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        if array is not None:
            found.update(f"{array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:32]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of every leaf of a nested dict."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}/{key}")
    else:
        yield path, value


def _nested(n: int, plain: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> State:
    """Return the state number `n` as a nested dict."""
    state: State = {}
    for path, value in [*plain.items(), *arrays.items()]:
        first, *keys = path.split("/")
        if first == str(n):
            inner = state
            for key in keys[:-1]:
                inner = inner.setdefault(key, {})
            inner[keys[-1]] = value
    return state
