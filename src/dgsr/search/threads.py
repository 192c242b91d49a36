"""One thread for the numerical libraries, and gradients of torch, while a search runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  # loads a linear algebra library of its own, which must be limited, too
from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and numpy to one thread, so that sums have one order and parallel fits share no cores.

    Within it the decoder can be refined, also where the caller has switched off gradients.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with (
            _libraries().limit(limits=1, user_api="blas"),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def _libraries() -> ThreadpoolController:
    """Return the controller of the loaded numerical libraries, cached because finding them takes time."""
    return ThreadpoolController()
