"""Files of arrays and texts: safetensors, which execute nothing when read, with a digest against damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

#: Exceptions that reading a file may raise if `packed` did not write it.
DAMAGE = (SafetensorError, ValueError, LookupError, TypeError, AttributeError, OverflowError)
#: Name of the text of a file that has only one.
TEXT = "dgsr"

_DIGEST = "sha256"
# Most bytes of a file that is read; none of this package has as many, and safetensors bounds the header.
_MOST_BYTES = 1 << 30
# Most levels of lists and objects in JSON. Files of this package have at most six.
_MOST_LEVELS = 20


def packed(texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the content of a file with texts and arrays by their names, and a digest of them."""
    content = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return save(content, metadata={**texts, _DIGEST: _digest(texts, content)})


def unpacked(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray], bool]:
    """Return the texts and the arrays of a file, and whether it has a digest, which older files lack.

    ValueError if the file is too large, of another kind or damaged.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has {path.stat().st_size} bytes")
    try:
        with safe_open(path, framework="numpy") as file:
            texts = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except DAMAGE as error:
        raise ValueError(str(error)[:200]) from error
    digest = texts.pop(_DIGEST, None)
    if digest is not None and digest != _digest(texts, arrays):
        raise ValueError("its content is not what was written")
    return texts, arrays, digest is not None


def from_json(text: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a text of JSON; ValueError if it is no JSON, or has too many levels."""
    try:
        found = json.loads(text, parse_constant=parse_constant)
    except RecursionError as error:
        raise ValueError("it has lists within lists without end") from error
    level = [found]
    for _ in range(_MOST_LEVELS):
        entries = [[*one.values()] if isinstance(one, dict) else one for one in level]
        level = [inner for outer in entries if isinstance(outer, list) for inner in outer]
    if level:
        raise ValueError(f"it has lists over {_MOST_LEVELS} levels deep")
    return found


def _digest(texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> str:
    """Return a hash of the whole content of a file."""
    text = texts[TEXT] if [*texts] == [TEXT] else json.dumps(texts, sort_keys=True)
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()
