"""Files of arrays and a text, safetensors of which nothing is executed, that tell when they are damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

#: Exceptions that reading a file may raise which `packed` did not make.
DAMAGE = (SafetensorError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)

_TEXT, _DIGEST = "dgsr", "sha256"


def packed(text: str, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a file that holds a text and arrays."""
    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(content, metadata={_TEXT: text, _DIGEST: _digest(text, content)})


def unpacked(path: Path, most_bytes: int, most_letters: int) -> tuple[str, dict[str, np.ndarray], bool]:
    """Return the text and the arrays of a file, and whether it has a digest, which older ones have not.

    Parameters
    ----------
    path : Path
    most_bytes, most_letters : int
        Largest size of the file, and of the text.

    Raises
    ------
    ValueError
        If the file is too large, not of this kind, or damaged.
    """
    if path.stat().st_size > most_bytes:
        raise ValueError(f"it has {path.stat().st_size} bytes")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if _TEXT not in metadata:
                raise ValueError("dgsr did not write it")
            text = metadata[_TEXT]
            if len(text) > most_letters:
                raise ValueError(f"its header has {len(text)} characters")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except DAMAGE as error:
        raise ValueError(str(error)[:200]) from error
    has_digest = _DIGEST in metadata
    if has_digest and metadata[_DIGEST] != _digest(text, arrays):
        raise ValueError("its content is not what was written")
    return text, arrays, has_digest


def _digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a hash of all that a file holds."""
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()
