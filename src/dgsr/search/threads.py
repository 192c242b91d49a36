"""One thread for the numerical libraries while a search runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  # its linear algebra is a library of its own
from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and numpy use one thread: sums have one order, and parallel fits do not compete for cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def _libraries() -> ThreadpoolController:
    """Return the numerical libraries of this process, all of which are loaded; finding them takes time."""
    return ThreadpoolController()
