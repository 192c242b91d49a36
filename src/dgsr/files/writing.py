"""Atomic writing of files: whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Replace the file at `path` in one step, so that no reader finds half of it, also after an interruption.

    If `path` is a link, its target is replaced. The permissions of an existing file remain, and a new file
    gets the default ones of the process. A pipe or a device is written to directly. OSError if the file
    cannot be written; an existing file is then unchanged.
    """
    with _plain_errors(path):
        if _is_stream(path):
            Path(path).write_bytes(content)
            return
        temporary = _written_beside(path, content)
        try:
            os.replace(temporary, os.path.realpath(path))
        finally:
            temporary.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise the OSError that `write_atomically` would raise for `path`, without changing any file."""
    with _plain_errors(path):
        if not _is_stream(path):
            _written_beside(path, b"").unlink()


def remove_leftovers(path: str | Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote to `path`."""
    target = Path(os.path.realpath(path))
    for leftover in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 8}.part"):
        leftover.unlink(missing_ok=True)


def _is_stream(path: str | Path) -> bool:
    """Return whether `path` is a pipe or a device, which cannot be replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _written_beside(path: str | Path, content: bytes) -> Path:
    """Write `content` to a temporary file beside `path`, with the same permissions, and return its path."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError("it is a folder")
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # raises OSError at the latest if the disk is full
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


@contextmanager
def _plain_errors(path: str | Path) -> Iterator[None]:
    """Add to an error which file could not be written, why, and what to do."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError for a name with a null character
        kind = type(error) if isinstance(error, OSError) else ValueError
        shown = str(path) if str(path).isprintable() else repr(str(path))
        raise kind(
            f"{shown} cannot be written ({getattr(error, 'strerror', None) or error}); "
            "name a file in a folder that exists, that may be written to and that has room."
        ) from error
