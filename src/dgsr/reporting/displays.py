"""Plots of a fit with matplotlib, as displays in the manner of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation


# Most formulas written beside the front, and most characters of each.
_N_LABELS, _LABEL_LENGTH = 5, 44

# Place of losses on a logarithmic axis when all of them are 0.
_FLOOR_OF_ZEROS = 1e-16

# Offsets of a label from its point, in typographic points, and its alignment; the first free place is taken.
_LABEL_PLACES = (
    (8, 6, "left", "bottom"),
    (8, -6, "left", "top"),
    (-8, -6, "right", "top"),
    (-8, 6, "right", "bottom"),
    (0, 10, "center", "bottom"),
    (0, -10, "center", "top"),
)


class LogLosses(NamedTuple):
    """Losses as they are drawn on a logarithmic axis, which has no place for 0."""

    values: np.ndarray  # (n,), all positive
    floor: float | None  # where losses of 0 are drawn; None if no loss is 0


def log_losses(losses: Sequence[float] | np.ndarray) -> LogLosses:
    """Return losses for a logarithmic axis: those of exactly 0 a decade below the smallest other one.

    Parameters
    ----------
    losses : array-like of shape (n,)
        Finite and not negative.
    """
    losses = np.asarray(losses, dtype=np.float64)
    zero = losses == 0
    if not zero.any():
        return LogLosses(losses.copy(), None)
    positive = losses[~zero]
    floor = max(float(positive.min()) / 10, 1e-300) if len(positive) else _FLOOR_OF_ZEROS
    return LogLosses(np.where(zero, floor, losses), floor)


class ParetoFrontDisplay:
    """The Pareto front of a fit: loss against description length, the chosen formula marked.

    Parameters
    ----------
    description_length : array-like of shape (n_candidates,)
        Bits of the formulas, in rising order.
    loss : array-like of shape (n_candidates,)
        NMSE of each candidate.
    formulas : sequence of str, of length n_candidates
    chosen : int
        Index of the candidate that predicts.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The steps of the front; a loss of exactly 0 is drawn a decade below the smallest other one, at a
        tick labelled 0.
    chosen_ : matplotlib Line2D
        The mark of the chosen candidate.
    labels_ : list of matplotlib Annotation
        The formulas that have room, first of the chosen candidate, then of those at which the loss falls the
        most.

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
        loss: Sequence[float],
        formulas: Sequence[str],
        *,
        chosen: int,
    ) -> None:
        self.description_length = description_length
        self.loss = loss
        self.formulas = formulas
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> ParetoFrontDisplay:
        """Plot the front of a fitted `DGSRRegressor`.

        Parameters
        ----------
        estimator : DGSRRegressor
        ax : matplotlib Axes, optional
            Where to plot; by default on a new figure.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If the fit has several outputs.
        """
        _check_one_output(estimator)
        front = estimator.pareto_front_
        display = cls(
            [candidate.description_length for candidate in front],
            [candidate.loss for candidate in front],
            [candidate.expression.text for candidate in front],
            chosen=front.index_of(estimator.expression_),
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ParetoFrontDisplay:
        """Plot on `ax`, or on a new figure; ImportError if matplotlib is not installed."""
        ax = _axes(ax)
        from matplotlib.ticker import MaxNLocator

        self.ax_, self.figure_ = ax, _figure(ax)
        losses = log_losses(self.loss)
        (self.line_,) = ax.step(
            self.description_length, losses.values, where="post", marker="o", markersize=4, linewidth=1.2
        )
        (self.chosen_,) = ax.plot(
            [self.description_length[self.chosen]],
            [losses.values[self.chosen]],
            linestyle="none",
            marker="D",
            markersize=8,
            markerfacecolor="none",
            markeredgewidth=1.8,
            color="C1",
            label="chosen",
        )
        ax.margins(x=0.12, y=0.12)
        _scale_losses(ax, losses)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="description length (bits)", ylabel="loss (NMSE)")
        ax.legend(loc="upper right", frameon=False)
        self.labels_ = self._label(losses.values)
        return self

    def _label(self, losses: np.ndarray) -> list[Annotation]:
        """Write the formulas for which there is room without overlapping each other or points."""
        from matplotlib.transforms import Bbox

        falls = np.concatenate([[0.0], -np.diff(np.log(losses))])
        others = [i for i in np.argsort(-falls, kind="stable").tolist() if i != self.chosen]
        corners = self.ax_.transData.transform(np.column_stack([self.description_length, losses]))
        points = _along_steps(corners)
        legend = self.ax_.get_legend()
        taken = [] if legend is None else [legend.get_window_extent()]
        inside = self.ax_.get_window_extent()
        labels: list[Annotation] = []
        for i in [self.chosen, *others]:
            if len(labels) == _N_LABELS:
                break
            for right, up, horizontal, vertical in _LABEL_PLACES:
                label = self.ax_.annotate(
                    _shortened(self.formulas[i]),
                    (self.description_length[i], losses[i]),
                    xytext=(right, up),
                    textcoords="offset points",
                    horizontalalignment=horizontal,
                    verticalalignment=vertical,
                    fontsize="small",
                    color="C1" if i == self.chosen else None,
                )
                label.set_parse_math(False)  # a dollar in a column's name is a dollar
                box = label.get_window_extent()
                is_free = (
                    inside.containsx(box.x0) and inside.containsx(box.x1) and not box.count_contains(points)
                )
                if is_free and not box.count_overlaps(taken):
                    taken.append(Bbox(box))
                    labels.append(label)
                    break
                label.remove()
        return labels


class SearchHistoryDisplay:
    """The loss of the best formula so far over the course of a search.

    Parameters
    ----------
    best_nmse : array-like of shape (n_rounds,)
        NMSE of the best formula after each round; not finite before there is one.
    progress : array-like of shape (n_rounds,)
        Seconds or evaluations after each round.
    x : {"seconds", "evaluations"}
        Which of the two `progress` holds.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The steps; a loss of exactly 0 is drawn a decade below the smallest other one, at a tick labelled 0.
        It is empty if there was no search.
    """

    def __init__(self, best_nmse: Sequence[float], progress: Sequence[float], *, x: str = "seconds") -> None:
        self.best_nmse = best_nmse
        self.progress = progress
        self.x = x

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, x: str = "seconds"
    ) -> SearchHistoryDisplay:
        """Plot the search of a fitted `DGSRRegressor`.

        Parameters
        ----------
        estimator : DGSRRegressor
        ax : matplotlib Axes, optional
            Where to plot; by default on a new figure.
        x : {"seconds", "evaluations"}, default="seconds"
            What the horizontal axis shows.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If `x` is neither of the two, or the fit has several outputs.
        """
        _check_one_output(estimator)
        if x not in ("seconds", "evaluations"):
            raise ValueError(f"x is {x!r}; give 'seconds' or 'evaluations'.")
        history = estimator.history_
        display = cls([entry["best_nmse"] for entry in history], [entry[x] for entry in history], x=x)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> SearchHistoryDisplay:
        """Plot on `ax`, or on a new figure; ImportError if matplotlib is not installed."""
        ax = _axes(ax)
        self.ax_, self.figure_ = ax, _figure(ax)
        nmse = np.asarray(self.best_nmse, dtype=np.float64)
        drawn = np.isfinite(nmse)
        losses = log_losses(nmse[drawn])
        progress = np.asarray(self.progress, dtype=np.float64)[drawn]
        marker = "o" if len(progress) == 1 else None  # a line through one point cannot be seen
        self.line_: Line2D
        (self.line_,) = ax.step(progress, losses.values, where="post", marker=marker, markersize=4)
        if len(progress):
            _scale_losses(ax, losses)
        else:
            ax.text(0.5, 0.5, "no search", transform=ax.transAxes, ha="center", va="center")
        ax.set(xlabel=self.x, ylabel="loss of the best formula (NMSE)")
        return self


def _along_steps(corners: np.ndarray) -> np.ndarray:
    """Return points every few pixels on the steps through `corners`, of shape (n, 2)."""
    path = [corners[0]]
    for before, after in pairwise(corners):
        path += [np.array([after[0], before[1]]), after]
    pieces = [
        np.linspace(start, end, 2 + int(np.abs(end - start).max() / 3)) for start, end in pairwise(path)
    ]
    return np.concatenate([corners, *pieces])


def _scale_losses(ax: Axes, losses: LogLosses) -> None:
    """Make the vertical axis logarithmic, with a tick "0" where losses of 0 are drawn."""
    ax.set_yscale("log")
    if losses.floor is None:
        return
    low, high = ax.get_ylim()
    ticks = [tick for tick in ax.get_yticks() if max(low, 2 * losses.floor) <= tick <= high]
    ax.set_yticks([losses.floor, *ticks], ["0", *(f"{tick:g}" for tick in ticks)])
    ax.set_yticks([], minor=True)
    ax.set_ylim(low, high)


def _shortened(formula: str) -> str:
    return formula if len(formula) <= _LABEL_LENGTH else formula[: _LABEL_LENGTH - 1] + "…"


def _check_one_output(estimator: Any) -> None:
    """Raise an error if an estimator is not fitted, or to several outputs."""
    check_is_fitted(estimator)
    if hasattr(estimator, "estimators_"):
        n_outputs = len(estimator.estimators_)
        raise ValueError(f"The fit has {n_outputs} outputs; give one of its estimators_ to plot that output.")


def _axes(ax: Axes | None) -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("Plots need matplotlib; install it with pip install dgsr[plot].") from None
    return pyplot.subplots()[1] if ax is None else ax


def _figure(ax: Axes) -> Figure:
    figure: Any = ax.figure
    return figure
