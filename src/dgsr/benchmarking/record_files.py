"""Files of records with a line of JSON for each; names that end in .gz are compressed, to a twentieth."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dgsr.files.writing import write_atomically

Record = Mapping[str, Any]

# The first bytes of a compressed file.
_GZIP = b"\x1f\x8b"


def read_records(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Return the records in a file of JSON lines, without a line that is incomplete after a kill.

    Raises ValueError if a line is the beginning of no record, so that runs are not added to another file.
    """
    records = []
    for line in _lines(Path(path)):
        if not line.startswith(("{", "\n")):
            raise ValueError(
                f"{path} has a line that is no run of a benchmark, {line[:40]!r}; name another file."
            )
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line))
    return records


def write_records(path: str | os.PathLike, records: Iterable[Record]) -> None:
    """Replace the contents of a file by records; the same records always give the same bytes."""
    content = b"".join(map(_line, records))
    write_atomically(Path(path), _compressed(content) if is_compressed(path) else content)


@contextmanager
def adding_to(path: str | os.PathLike, known: Sequence[Record]) -> Iterator[Callable[[Record], None]]:
    """Yield a function that appends a record to a file, and returns when it is on the disk.

    `known` are the records of the file, which must exist. Within the block, each new record is a separate
    part of a compressed file, which takes ten times the space; at its end all parts are joined.
    """
    if not is_compressed(path):
        yield lambda record: _append(path, _line(record))
        return
    n_added = 0

    def add(record: Record) -> None:
        nonlocal n_added
        if n_added == 0:  # an incomplete part would hide the parts after it
            write_records(path, known)
        _append(path, _compressed(_line(record)))
        n_added += 1

    try:
        yield add
    finally:
        if n_added > 0:
            write_records(path, read_records(path))


def _append(path: str | os.PathLike, content: bytes) -> None:
    """Append a line, or a part of a compressed file, and wait until it is on the disk."""
    with open(path, "ab+") as file:
        if not is_compressed(path) and file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # the writer of the last line was killed before its end
                content = b"\n" + content
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def is_compressed(path: str | os.PathLike) -> bool:
    """Return whether a file of this name is compressed."""
    return Path(path).suffix == ".gz"


def _lines(path: Path) -> Iterator[str]:
    if not is_compressed(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file
        return
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        try:
            yield from file
        except (EOFError, gzip.BadGzipFile, zlib.error):  # its last writer was killed while writing a part
            with open(path, "rb") as begun:
                if not _GZIP.startswith(begun.read(len(_GZIP))):
                    raise ValueError(f"{path} is no compressed file of runs; name another file.") from None


def _line(record: Record) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
