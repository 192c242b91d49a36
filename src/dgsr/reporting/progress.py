"""The progress of a search or training: a live line on a terminal, a bar in a notebook, or else log lines."""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from dgsr.expressions.formulas.expression import Expression

# Seconds between two lines of a log.
_LOG = 2.0
# Seconds between two changes of a live line or a bar.
_LIVE = 0.1


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


#: A function that is called with the progress of a search, and may return True to end it.
SearchCallback = Callable[[SearchProgress], bool | None]


@contextmanager
def shown(
    line: Callable[[Any], str], console: Console, share: Callable[[Any], float] | None = None
) -> Iterator[Callable[[Any], None]]:
    """Yield a callback that shows the progress with which it is called.

    `line` returns the progress as one line of text, which a terminal changes and erases at the end; otherwise
    one is printed every two seconds, the first at once. A notebook shows a bar instead: `share` returns the
    share of the work that is done, 0 to 1.
    """
    if _in_notebook():
        with _notebook_bar(line, share) as show:
            yield _every(_LIVE, show)
    elif console.is_terminal:
        with Live(Text("starting"), console=console, auto_refresh=False, transient=True) as live:

            def update(progress: Any) -> None:
                text = Text(printable(line(progress)), no_wrap=True, overflow="ellipsis")
                live.update(text, refresh=True)

            yield _every(_LIVE, update)
    else:
        yield _every(_LOG, lambda progress: console.print(Text(printable(line(progress))), soft_wrap=True))


@contextmanager
def search_shown(verbose: bool, callback: SearchCallback | None) -> Iterator[SearchCallback | None]:
    """Yield the function that a search calls with its progress after every round, or None if there is none.

    With `verbose` progress is shown on standard output; then the user's callback is called, whose result is
    returned.
    """
    if not verbose:
        yield callback
        return
    with shown(search_line, Console(highlight=False), lambda progress: progress.share) as show:

        def both(progress: SearchProgress) -> bool | None:
            show(progress)
            return None if callback is None else callback(progress)

        yield both


def print_line(line: str) -> None:
    """Print a line on standard output without colours or wrapping."""
    Console(highlight=False).print(Text(line), soft_wrap=True)


def print_result(estimator: Any) -> None:
    """Print a line on the result of a `DGSRRegressor` with one target."""
    loss = min(candidate.loss for candidate in estimator.pareto_front_)
    line = (
        f"{estimator.n_evaluations_:,} evaluations, best NMSE {loss:.3g}, stopped: {estimator.stop_reason_}; "
        f"chosen: {estimator.expression_}"
    )
    print_line(printable(line))


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


def _every(seconds: float, show: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a callback that passes its first call to `show`, and later ones at most every `seconds`."""
    due = -math.inf

    def callback(progress: Any) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            show(progress)
            due = now + seconds

    return callback


def _in_notebook() -> bool:
    """Return whether this process is a kernel that shows HTML, such as Jupyter's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and shell.has_trait("kernel")


@contextmanager
def _notebook_bar(
    line: Callable[[Any], str], share: Callable[[Any], float] | None
) -> Iterator[Callable[[Any], None]]:
    from IPython.display import HTML, display

    handle = display(HTML(_bar("starting", 0.0)), display_id=True)

    def show(progress: Any) -> None:
        handle.update(HTML(_bar(line(progress), 0.0 if share is None else share(progress))))

    try:
        yield show
    finally:
        handle.update(HTML(""))


def _bar(text: str, share: float) -> str:
    done = f"{100.0 * min(max(share, 0.0), 1.0):.0f}"
    return (
        f'<progress value="{done}" max="100" aria-label="share of the budget"></progress> '
        f'<code style="white-space: pre-wrap">{html.escape(text)}</code>'
    )
