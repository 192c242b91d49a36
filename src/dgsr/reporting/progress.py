"""The progress of a search or training: a live line on a terminal, a bar in a notebook, or else log lines."""

from __future__ import annotations

import html
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from dgsr.expressions.formulas.expression import Expression

# Most seconds between two lines of a log.
_LOG = 2.0
# Seconds between two changes of a live line or a bar.
_LIVE = 0.1
# Share of a search's budget below which the seconds left are too uncertain to be shown.
_LEAST_SHARE = 0.01

# The display around a fit or a training, if there is one.
_DISPLAY: ContextVar[_Display | None] = ContextVar("display", default=None)


@dataclass(frozen=True)
class SearchProgress:
    """The argument of the `callback` of `DGSRRegressor`, which is called after every round.

    Parameters
    ----------
    evaluations : int
        Number of equations evaluated so far.
    seconds : float
        Seconds since the search began, without compiling.
    best_nmse : float
        NMSE of the best formula so far, on all rows of the fit, or 100,000 of them if there are more. It may
        rise sometimes, since the search chooses by a sample of at most `max_rows` rows.
    best_expression : Expression
        That formula, before it is finished: the best on the rows of the search.
    share : float
        Share of the budget that is spent, 0 to 1: of evaluations or of seconds, whichever is larger.
    """

    evaluations: int
    seconds: float
    best_nmse: float
    best_expression: Expression
    share: float = 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget is spent at the speed so far; infinite while that is not known."""
        return math.inf if self.share < _LEAST_SHARE else self.seconds * (1.0 / self.share - 1.0)


#: A function that is called with the progress of a search, and may return True to end it.
SearchCallback = Callable[[SearchProgress], bool | None]


def begin_phase(name: str) -> None:
    """Name what begins now, such as compiling, on the display around a fit or a training, if there is one."""
    display = _DISPLAY.get()
    if display is not None:
        display.begin(name)


@contextmanager
def shown(line: Callable[[Any], str], console: Console) -> Iterator[Callable[[Any], None]]:
    """Yield a callback that shows the progress with which it is called, beside the phase of `begin_phase`.

    `line` returns the progress as one line of text; its attributes `share` and `seconds_left` are the share
    of the work that is done, 0 to 1, and the seconds that the rest will take. A terminal has a line that
    changes and is erased at the end, and a notebook a bar. Otherwise a line is printed every two seconds, and
    the first of a phase at once.
    """
    writing: AbstractContextManager[Callable[[str, float], Any]]
    if _in_notebook():
        writing, interval = _notebook_bar(), _LIVE
    elif console.is_terminal:
        writing, interval = _live_line(console), _LIVE
    else:
        writing, interval = nullcontext(lambda text, _: console.print(Text(text), soft_wrap=True)), _LOG
    with writing as write, _Display(line, write, interval) as display:
        yield display.show


class _Display:
    """The phase and the last progress, written by a thread also while no progress comes."""

    def __init__(
        self, line: Callable[[Any], str], write: Callable[[str, float], Any], interval: float
    ) -> None:
        self._line, self._write, self._interval = line, write, interval
        self._phase, self._progress, self._share = "", None, 0.0
        self._since = time.monotonic()  # when the phase began, or its last progress came
        self._due = self._since + interval
        self._lock, self._over = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, daemon=True)

    def __enter__(self) -> _Display:
        self._token = _DISPLAY.set(self)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        _DISPLAY.reset(self._token)
        self._over.set()
        self._thread.join()

    def begin(self, phase: str) -> None:
        with self._lock:
            self._phase, self._progress, self._since = phase, None, time.monotonic()

    def show(self, progress: Any) -> None:
        with self._lock:
            if self._progress is None:
                self._due = -math.inf
            self._progress, self._share, self._since = progress, progress.share, time.monotonic()
            self._write_if_due()

    def _keep_writing(self) -> None:
        while not self._over.wait(_LIVE):
            with self._lock:
                self._write_if_due()

    def _write_if_due(self) -> None:
        now = time.monotonic()
        if now >= self._due and (text := self._text(now - self._since)):
            self._write(printable(text), self._share)
            self._due = now + self._interval

    def _text(self, seconds: float) -> str:
        """Return the line, `seconds` after the phase began or its last progress came."""
        if self._progress is None:
            return f"{self._phase}, {duration(seconds)}" if seconds >= 1.0 else self._phase
        done = f"{self._share:.1%}" if self._share < 0.01 else f"{self._share:.0%}"
        left = self._progress.seconds_left - seconds
        done += f", {duration(max(left, 0.0))} left" if math.isfinite(left) else ""
        return f"{self._phase} {done}: {self._line(self._progress)}".lstrip()


@contextmanager
def search_shown(verbose: bool, callback: SearchCallback | None) -> Iterator[SearchCallback | None]:
    """Yield the function that a search calls with its progress after every round, or None if there is none.

    With `verbose` progress is shown on standard output; then the user's callback is called, whose result is
    returned.
    """
    if not verbose:
        yield callback
        return
    with shown(search_line, Console(highlight=False)) as show:

        def both(progress: SearchProgress) -> bool | None:
            show(progress)
            return None if callback is None else callback(progress)

        yield both


def print_result(estimator: Any) -> None:
    """Print a line on the result of a `DGSRRegressor` with one target."""
    loss = min(candidate.loss for candidate in estimator.pareto_front_)
    line = (
        f"{estimator.n_evaluations_:,} evaluations, best NMSE {loss:.3g}, stopped: {estimator.stop_reason_}; "
        f"chosen: {estimator.expression_}"
    )
    Console(highlight=False).print(Text(printable(line)), soft_wrap=True)


def printable(text: str) -> str:
    """Return `text` in one line, with escapes for control and other characters that are not printable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def search_line(progress: SearchProgress) -> str:
    """Return the progress of a search as a line."""
    speed = progress.evaluations / max(progress.seconds, 1e-9)
    return (
        f"{progress.evaluations:,} evaluations, {speed:,.0f} a second, "
        f"best NMSE {progress.best_nmse:.3g}: {progress.best_expression.shortened()}"
    )


def duration(seconds: float) -> str:
    """Return a time as text in the unit that suits it, such as 45 s, 12 min or 7.9 h."""
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def _in_notebook() -> bool:
    """Return whether this process is a kernel that shows HTML, such as Jupyter's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and shell.has_trait("kernel")


@contextmanager
def _live_line(console: Console) -> Iterator[Callable[[str, float], None]]:
    with Live(Text(""), console=console, auto_refresh=False, transient=True) as live:
        yield lambda text, _: live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)


@contextmanager
def _notebook_bar() -> Iterator[Callable[[str, float], None]]:
    from IPython.display import HTML, display

    handle = display(HTML(_bar("starting", 0.0)), display_id=True)
    try:
        yield lambda text, share: handle.update(HTML(_bar(text, share)))
    finally:
        handle.update(HTML(""))


def _bar(text: str, share: float) -> str:
    done = f"{100.0 * min(max(share, 0.0), 1.0):.0f}"
    return (
        f'<progress value="{done}" max="100" aria-label="share of the budget"></progress> '
        f'<code style="white-space: pre-wrap">{html.escape(text)}</code>'
    )
