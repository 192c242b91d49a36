"""The environment that the figures of a run depend on: versions, the commit and the processor."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dgsr.version import __version__


@cache
def environment() -> dict[str, str]:
    """Return version and commit of dgsr, the versions of python, numpy and torch, and the processor's name.

    The commit is ``"unknown"`` outside of a checkout, and ends in ``-dirty`` where files were changed.
    """
    return {
        "version": __version__,
        "commit": _commit(Path(__file__).parent),
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "torch": _version("torch"),
        "processor": _processor(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _commit(folder: Path) -> str:
    """Return the commit of the sources in a folder, if they are a checkout's and not merely inside of one."""
    tracked = _git(folder, "ls-files", "--error-unmatch", "runner.py")
    head = _git(folder, "rev-parse", "HEAD")
    if tracked is None or head is None:
        return "unknown"
    return head + ("-dirty" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or "unknown"
