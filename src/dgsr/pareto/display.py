"""The plot of a front with matplotlib, as a scikit-learn display, and functions that other plots share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

    from dgsr.pareto.candidate import Candidate

# Most characters of a formula that is written beside the front.
_LABEL_LENGTH = 44
# Offsets of a label from its point, right and up, in points, of which the first free one is used.
_LABEL_PLACES = ((8, 6), (8, -6), (-8, -6), (-8, 6), (0, 10), (0, -10))


class LogLosses(NamedTuple):
    """Losses for a logarithmic axis, on which 0 has no position."""

    values: np.ndarray  # (n,), all positive
    floor: float | None  # where losses of 0 are drawn; None if no loss is 0


def log_losses(losses: Sequence[float] | np.ndarray) -> LogLosses:
    """Return finite losses (n,) for a logarithmic axis; 0 becomes a tenth of the smallest other one."""
    losses = np.asarray(losses, dtype=np.float64)
    zero = losses == 0
    smallest = float(losses[~zero].min(initial=np.inf))
    floor = max(smallest / 10, 1e-300) if smallest < np.inf else np.finfo(np.float64).eps
    return LogLosses(np.where(zero, floor, losses), floor if zero.any() else None)


class ParetoFrontDisplay:
    """The Pareto front of a fit: error on rows left out against bits, the chosen formula marked.

    Parameters
    ----------
    description_length : array-like of shape (n_candidates,)
        Bits of the formulas, in rising order.
    error : array-like of shape (n_candidates,)
        NMSE of each candidate on rows left out of the fit of its constants.
    formulas : sequence of str, of length n_candidates
    chosen : int or None, default=None
        Index of the chosen candidate, which is marked; None marks none.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The steps of the front; an error of exactly 0 is drawn a decade below the smallest other one, at a
        tick labelled 0.
    chosen_ : matplotlib Line2D or None
        The mark of the chosen candidate.
    labels_ : list of matplotlib Annotation
        The formulas for which there is room: first that of the chosen candidate, then those of the steepest
        falls of the error.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from dgsr.reporting.displays import ParetoFrontDisplay
    >>> display = ParetoFrontDisplay([1, 3], [0.5, 0.0], ["x", "2*x"], chosen=1).plot()
    >>> [label.get_text() for label in display.labels_]
    ['2*x', 'x']
    """

    def __init__(
        self,
        description_length: Sequence[float],
        error: Sequence[float],
        formulas: Sequence[str],
        *,
        chosen: int | None = None,
    ) -> None:
        self.description_length = description_length
        self.error = error
        self.formulas = formulas
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> ParetoFrontDisplay:
        """Plot the front of a fitted `DGSRRegressor` on `ax`, by default on a new figure.

        Raises
        ------
        ImportError, sklearn.exceptions.NotFittedError, ValueError
            If matplotlib is not installed, `estimator` is not fitted, or the fit has several outputs.
        """
        check_one_output(estimator)
        front = estimator.pareto_front_
        return cls.from_front(front, chosen=front.chosen, ax=ax)

    @classmethod
    def from_front(
        cls, front: Sequence[Candidate], *, chosen: int | None = None, ax: Axes | None = None
    ) -> ParetoFrontDisplay:
        """Plot a front on `ax`, with the candidate `chosen` marked; see `ParetoFront.plot`."""
        display = cls(
            [candidate.description_length for candidate in front],
            [candidate.error for candidate in front],
            [candidate.expression.text for candidate in front],
            chosen=chosen,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ParetoFrontDisplay:
        """Plot on `ax`, or on a new figure; ImportError if matplotlib is not installed."""
        ax = axes_of(ax)
        from matplotlib.ticker import MaxNLocator

        self.ax_, self.figure_ = ax, ax.figure
        losses = log_losses(self.error)
        (self.line_,) = ax.step(
            self.description_length, losses.values, where="post", marker="o", markersize=4, linewidth=1.2
        )
        self.chosen_ = None if self.chosen is None else self._mark(self.chosen, losses.values)
        ax.margins(x=0.12, y=0.12)
        scale_losses(ax, losses)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="description length (bits)", ylabel="NMSE on rows left out")
        if self.chosen_ is not None:
            ax.legend(loc="upper right", frameon=False)
        self.labels_ = self._label(losses.values)
        return self

    def _mark(self, chosen: int, losses: np.ndarray) -> Line2D:
        at = [self.description_length[chosen]], [losses[chosen]]
        (mark,) = self.ax_.plot(
            *at, "D", color="C1", label="chosen", markersize=8, markerfacecolor="none", markeredgewidth=1.8
        )
        return mark

    def _label(self, losses: np.ndarray) -> list[Annotation]:
        """Write at most five formulas, for which there is room without overlapping each other or points."""
        from matplotlib.transforms import Bbox

        falls = np.concatenate([[0.0], -np.diff(np.log(losses))])
        order = np.argsort(-falls, kind="stable").tolist()
        order.sort(key=lambda i: i != self.chosen)  # the chosen formula first
        self.figure_.canvas.figure.draw_without_rendering()  # so that the axes have their final place
        corners = self.ax_.transData.transform(np.column_stack([self.description_length, losses]))
        points, inside, legend = _along_steps(corners), self.ax_.get_window_extent(), self.ax_.get_legend()
        taken = [] if legend is None else [legend.get_window_extent()]
        labels: list[Annotation] = []
        told: dict[str, warnings.WarningMessage] = {}  # warnings of characters that the font lacks, by text
        for i in order:
            if len(labels) == 5:
                break
            for place in _LABEL_PLACES:
                label = self._labelled(i, losses[i], place)
                with warnings.catch_warnings(record=True) as found:
                    warnings.simplefilter("always")
                    box = label.get_window_extent()
                told.update({str(one.message): one for one in found})
                is_inside = inside.containsx(box.x0) and inside.containsx(box.x1)
                if is_inside and not box.count_contains(points) and not box.count_overlaps(taken):
                    taken.append(Bbox(box))
                    labels.append(label)
                    break
                label.remove()
        for one in told.values():
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return labels

    def _labelled(self, i: int, loss: float, place: tuple[int, int]) -> Annotation:
        """Write formula `i` beside its point, on the side where the place is."""
        formula, (right, up) = self.formulas[i], place
        label = self.ax_.annotate(
            formula if len(formula) <= _LABEL_LENGTH else formula[: _LABEL_LENGTH - 1] + "…",
            (self.description_length[i], loss),
            xytext=place,
            textcoords="offset points",
            ha="center" if right == 0 else "left" if right > 0 else "right",
            va="bottom" if up > 0 else "top",
            fontsize="small",
            color="C1" if i == self.chosen else None,
        )
        label.set_parse_math(False)  # so that a dollar sign in a column's name is shown
        label.set_in_layout(False)
        return label


def _along_steps(corners: np.ndarray) -> np.ndarray:
    """Return points every few pixels on the steps through `corners`, of shape (n, 2)."""
    path = [corners[0]]
    for before, after in pairwise(corners):
        path += [np.array([after[0], before[1]]), after]
    pieces = [np.linspace(a, b, 2 + int(np.abs(b - a).max() / 3)) for a, b in pairwise(path)]
    return np.concatenate([corners, *pieces])


def scale_losses(ax: Axes, losses: LogLosses) -> None:
    """Make the vertical axis logarithmic, with a tick "0" at the position of losses of 0."""
    ax.set_yscale("log")
    if losses.floor is None:
        return
    low, high = ax.get_ylim()
    ticks = [tick for tick in ax.get_yticks() if max(low, 2 * losses.floor) <= tick <= high]
    ax.set_yticks([losses.floor, *ticks], ["0", *(f"{tick:g}" for tick in ticks)])
    ax.set_yticks([], minor=True)
    ax.set_ylim(low, high)


def check_one_output(estimator: Any) -> None:
    """Raise an error if an estimator is not fitted, or is fitted to several outputs."""
    check_is_fitted(estimator)
    if hasattr(estimator, "estimators_"):
        n_outputs = len(estimator.estimators_)
        raise ValueError(f"The fit has {n_outputs} outputs; give one of its estimators_ to plot that output.")


def axes_of(ax: Axes | None) -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("Plots need matplotlib; install it with pip install dgsr[plot].") from None
    return pyplot.subplots(layout="constrained")[1] if ax is None else ax
