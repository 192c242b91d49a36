"""Warnings that point at the user's line that called a fit."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The sentence that warnings end with in a fit of several targets.
_SUBJECT: ContextVar[str] = ContextVar("subject", default="")
# Warnings that are given after the end of a search.
_WAITING: ContextVar[list[str] | None] = ContextVar("waiting", default=None)


@contextmanager
def warnings_about(subject: str) -> Iterator[None]:
    """Let every warning end with its subject, since filters match the beginning of a message."""
    token = _SUBJECT.set(f" This is about {subject}.")
    try:
        yield
    finally:
        _SUBJECT.reset(token)


def warn_caller(message: str) -> None:
    """Give a UserWarning at the nearest caller outside of this package, numpy and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "dgsr",
        "numpy",
        "sklearn",
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message + _SUBJECT.get(), stacklevel=level)


def warn_in_search(message: str) -> None:
    """Give a UserWarning that ends no search: if filters make it an error, it is given after the search."""
    try:
        warn_caller(message)
    except UserWarning:
        waiting = _WAITING.get()
        if waiting is None:
            raise
        waiting.append(message)


@contextmanager
def warnings_wait() -> Iterator[None]:
    """Let warnings that would end a search be given after it, unless the search raises an exception."""
    waiting = list[str]()
    token = _WAITING.set(waiting)
    try:
        yield
    finally:
        _WAITING.reset(token)
    for message in waiting:
        warn_caller(message)
