"""Warnings that point at the line of the user that called for a fit."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# What the warnings are about, where a fit has several targets.
_SUBJECT: ContextVar[str] = ContextVar("subject", default="")
# Warnings that wait for the end of a search.
_WAITING: ContextVar[list[str] | None] = ContextVar("waiting", default=None)


@contextmanager
def warnings_about(subject: str) -> Iterator[None]:
    """Let every warning end with what it is about; filters look at how a message begins."""
    token = _SUBJECT.set(f" This is about {subject}.")
    try:
        yield
    finally:
        _SUBJECT.reset(token)


def warn_caller(message: str) -> None:
    """Give a UserWarning at the nearest caller that belongs to no package below this one, nor to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "dgsr",
        "numpy",
        "sklearn",
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message + _SUBJECT.get(), stacklevel=level)


def warn_in_search(message: str) -> None:
    """Give a UserWarning that ends no search: where the caller makes it an error, it waits for the end."""
    try:
        warn_caller(message)
    except UserWarning:
        waiting = _WAITING.get()
        if waiting is None:
            raise
        waiting.append(message)


@contextmanager
def warnings_wait() -> Iterator[None]:
    """Let warnings that would end a search follow it, but for the search of a fit that fails."""
    waiting = list[str]()
    token = _WAITING.set(waiting)
    try:
        yield
    finally:
        _WAITING.reset(token)
    for message in waiting:
        warn_caller(message)
