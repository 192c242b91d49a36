"""One thread for the numerical libraries, and gradients of torch, while a search runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  # loads a linear algebra library of its own, which must be limited, too
from threadpoolctl import ThreadpoolController

# The threads with a fit, and what is to be restored when the last of these fits is over: torch's number of
# threads, and the limits of the other libraries.
_fitting: list[int] = []
_before: dict[str, Any] = {}
_lock = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and numpy to one thread, so that sums have one order and parallel fits share no cores.

    Within it the decoder can be refined, also where the caller has switched off gradients. Fits in several
    threads have the limit until the last of them is over, since it is one of the whole process.
    """
    import torch

    own = threading.get_ident()
    if own in _fitting:
        yield
        return
    n_threads = torch.get_num_threads()  # in a new thread it must be asked for before it is set
    with _lock:
        if not _fitting:
            _before["torch"] = n_threads
            _before["blas"] = _libraries().limit(limits=1, user_api="blas")
        _fitting.append(own)
    torch.set_num_threads(1)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(_before["torch"])
        with _lock:
            _fitting.remove(own)
            if not _fitting:
                _before["blas"].restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    """Return the controller of the loaded numerical libraries, cached because finding them takes time."""
    return ThreadpoolController()
