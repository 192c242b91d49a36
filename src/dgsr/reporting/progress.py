"""How a search or a training goes: one live line on a terminal, a bar in a notebook, log lines elsewhere."""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from dgsr.expressions.expression import Expression

# Seconds between two lines of a log, and between two changes of a line or a bar.
_LOG, _LIVE = 2.0, 0.1


@dataclass(frozen=True)
class SearchProgress:
    """What the `callback` of `DGSRRegressor` is told after every round.

    Parameters
    ----------
    evaluations : int
        Equations evaluated so far.
    seconds : float
        Since the fit began.
    best_nmse : float
        Lowest NMSE so far.
    best_expression : Expression
        The formula it belongs to.
    share : float
        How much of the budget is spent: 0 to 1, of evaluations or seconds, whichever is more.
    """

    evaluations: int
    seconds: float
    best_nmse: float
    best_expression: Expression
    share: float = 0.0


@contextmanager
def shown(
    line: Callable[[Any], str], console: Console, share: Callable[[Any], float] | None = None
) -> Iterator[Callable[[Any], None]]:
    """Give a callback that shows how it goes.

    Parameters
    ----------
    line : callable
        Says in one line what the callback is given.
    console : rich.console.Console
        Where it is shown: on a terminal one line that changes and is gone at the end; in a notebook a
        bar; else a line every two seconds, the first at once.
    share : callable, optional
        How much of it is done, 0 to 1, for the bar.

    Yields
    ------
    callable
    """
    if _in_notebook():
        with _notebook_bar(line, share) as show:
            yield _every(_LIVE, show)
    elif console.is_terminal:
        with Live(Text("starting"), console=console, auto_refresh=False, transient=True) as live:
            yield _every(
                _LIVE, lambda progress: live.update(_one_line(printable(line(progress))), refresh=True)
            )
    else:
        yield _every(_LOG, lambda progress: console.print(Text(printable(line(progress))), soft_wrap=True))


def printable(text: str) -> str:
    """Return `text` in one line, with escapes for what would command a terminal or deceive its reader."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def search_line(progress: SearchProgress, names: Sequence[str] | None = None) -> str:
    """How a search goes, in a line; with other names of the features, if there are."""
    best = progress.best_expression if names is None else progress.best_expression.with_feature_names(names)
    speed = progress.evaluations / max(progress.seconds, 1e-9)
    return (
        f"{progress.evaluations:,} evaluations, {speed:,.0f} a second, "
        f"best NMSE {progress.best_nmse:.3g}: {best.shortened()}"
    )


def _every(seconds: float, show: Callable[[Any], None]) -> Callable[[Any], None]:
    """Pass the first of many calls on to `show`, and then one in so many seconds."""
    due = -math.inf

    def callback(progress: Any) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            show(progress)
            due = now + seconds

    return callback


def _one_line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _in_notebook() -> bool:
    """Whether this runs in a kernel that shows HTML, as Jupyter's do."""
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
