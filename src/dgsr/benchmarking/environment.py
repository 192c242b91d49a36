"""The environment on which the figures of a run depend: versions, the commit and the processor."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dgsr.benchmarking.methods import PACKAGES
from dgsr.files.version import __version__

#: Suffix of the commit where the package or its weights were changed after it.
CHANGED = "-dirty"


@cache
def environment() -> dict[str, str]:
    """Return version and commit of dgsr, versions of dependencies and peers, and the processor's name.

    The commit is the last one that changed the package or its weights, so that a commit of results or of
    pages counts as the same state of the search. It is ``"unknown"`` outside of a checkout, and ends in
    ``-dirty`` where the package or its weights have changed since.
    """
    return {
        "version": __version__,
        "commit": _commit(Path(__file__).parent),
        "python": platform.python_version(),
        **{package: _version(package) for package in ("numpy", "numba", "scipy", "sympy", "torch")},
        **{peer: its for peer in PACKAGES.values() if (its := _version(peer)) != "unknown"},
        "processor": _processor(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _commit(folder: Path) -> str:
    """Return the commit of the sources in a folder, if they are tracked and not merely inside a checkout."""
    tracked = _git(folder, "ls-files", "--error-unmatch", "runner.py")
    sources = [f":(top){name}" for name in ("src", "pretrained")]
    last = _git(folder, "log", "-1", "--format=%H", "--", *sources)
    if tracked is None or not last:
        return "unknown"
    return last + (CHANGED if _git(folder, "status", "--porcelain", "--", *sources) else "")


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
