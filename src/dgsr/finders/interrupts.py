"""Ctrl-C as a request that a fit reads between two steps, instead of an exception at any moment."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Seconds after which an unread request lets the next Ctrl-C raise, since a user's function may hang.
_PATIENCE = 5.0


class Interrupts:
    """A context in which Ctrl-C is counted instead of raising KeyboardInterrupt.

    It has no effect outside the main thread or where the program has its own handler for SIGINT. The first
    request ends a search, and the next one ends the finishing of its formulas.
    """

    def __init__(self) -> None:
        self.n = 0  # number of requests so far
        self._may_raise = False
        self._unread_since: float | None = None

    def __enter__(self) -> Interrupts:
        is_main = threading.current_thread() is threading.main_thread()
        self._is_on = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_on:
            signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_on:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self.n += 1
        if self._unread_since is None:
            self._unread_since = now
        if self._may_raise or now - self._unread_since > _PATIENCE:
            raise KeyboardInterrupt

    def more_than(self, n: int) -> bool:
        """Return whether there were more than n requests, and mark all requests as read."""
        self._unread_since = None
        return self.n > n

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let Ctrl-C raise KeyboardInterrupt while processes are waited for or a user's function runs."""
        self._may_raise = True
        try:
            yield
        finally:
            self._may_raise = False
