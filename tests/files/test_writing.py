"""Files are written whole or not at all, where the user means them to be, and errors say what to do."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from dgsr.files.writing import check_writable, write_atomically

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions, links and signals")

# Is killed, as by kill -9, when it calls the function of `os` that is named.
KILLED = """
import os, signal, sys
from dgsr.files.writing import write_atomically

setattr(os, sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
write_atomically(sys.argv[1], b"new")
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "file"
    for content in (b"one", b"two"):
        write_atomically(str(path), content)
        assert path.read_bytes() == content
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch, step, error):
    def fail(*_):
        raise error

    path = tmp_path / "file"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(type(error)) as caught:
            write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]
    if isinstance(error, OSError):
        assert str(caught.value).startswith(
            f"{path} cannot be written (No space left on device); name a file"
        )


@needs_posix
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_writer_that_is_killed_leaves_the_old_file_whole(tmp_path, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), step], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    write_atomically(path, b"newer")
    assert path.read_bytes() == b"newer"


@pytest.mark.parametrize("call", [check_writable, lambda path: write_atomically(path, b"new")])
@pytest.mark.parametrize(
    ("name", "error"), [("none/file", FileNotFoundError), (".", IsADirectoryError), ("file/x", OSError)]
)
def test_a_path_that_cannot_be_written_is_named_with_the_mend(tmp_path, call, name, error):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(error) as caught:
        call(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name} cannot be written (")
    assert "name a file in a folder that exists" in str(caught.value)
    assert names(tmp_path) == ["file"]


def test_a_check_leaves_everything_as_it_is(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@needs_posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_the_file_it_leads_to_is_replaced(tmp_path, exists):
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "here" / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to("../there/target")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert (names(tmp_path / "there"), names(tmp_path / "here")) == (["target"], ["link"])


@needs_posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


@needs_posix
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@needs_posix
def test_a_pipe_is_written_to_and_stays(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    check_writable(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(path, b"new")
        assert os.read(reader, 9) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]
