"""Run a command as another machine would: `python tests/tools/other_processor.py pytest -m search`.

The compiler and every library that chooses its code by the processor is told of an old one, so that sums are
added in another order and elementary functions end in other digits. What does not apply to an operating
system, a processor or a version of a library is not set, or ignored by whom it is meant for.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

# What glibc chooses its elementary functions by: exp, log, sin, cos and pow then differ in the last digit.
_GLIBC_FEATURES = ("AVX", "AVX2", "FMA", "FMA4", "AVX512F")


def environment() -> dict[str, str]:
    """Return the environment variables that make this machine compute as an old one."""
    chosen = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "ATEN_CPU_CAPABILITY": "default",
        "NPY_DISABLE_CPU_FEATURES": " ".join(_dispatched_by_numpy()),
    }
    if platform.machine().lower() in ("x86_64", "amd64"):
        chosen |= {
            "OPENBLAS_CORETYPE": "Nehalem",
            "MKL_CBWR": "COMPATIBLE",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
        }
        if platform.libc_ver()[0] == "glibc":
            chosen["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in _GLIBC_FEATURES)
    elif platform.machine().lower() in ("aarch64", "arm64"):
        chosen["OPENBLAS_CORETYPE"] = "ARMV8"
    return chosen


def _dispatched_by_numpy() -> list[str]:
    """Return the features numpy has code for beyond its baseline, as far as this processor has them."""
    try:
        from numpy._core import _multiarray_umath as core
    except ImportError:  # numpy 1
        from numpy.core import _multiarray_umath as core
    return [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]


if __name__ == "__main__":
    chosen = environment()
    print("\n".join(f"{name}={value}" for name, value in chosen.items()), flush=True)
    sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **chosen}, check=False).returncode)
