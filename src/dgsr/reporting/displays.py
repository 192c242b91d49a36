"""Plots of a fit with matplotlib, as scikit-learn displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import PredictionErrorDisplay

from dgsr.pareto.display import ParetoFrontDisplay, axes_of, check_one_output, log_losses, scale_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


__all__ = ["ParetoFrontDisplay", "SearchHistoryDisplay", "plot_predictions"]


class SearchHistoryDisplay:
    """The loss of the best formula so far over the course of a search.

    Parameters
    ----------
    best_nmse : array-like of shape (n_rounds,)
        NMSE of the best formula after each round; not finite before there is a formula.
    progress : array-like of shape (n_rounds,)
        Seconds or evaluations after each round.
    x : {"seconds", "evaluations"}
        The quantity in `progress`.

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
            The quantity on the horizontal axis.

        Raises
        ------
        ImportError, sklearn.exceptions.NotFittedError, ValueError
            If matplotlib is not installed, `estimator` is not fitted, or `x` is neither of the two or the fit
            has several outputs.
        """
        check_one_output(estimator)
        if x not in ("seconds", "evaluations"):
            raise ValueError(f"x is {x!r}; give 'seconds' or 'evaluations'.")
        history = estimator.history_
        display = cls([entry["best_nmse"] for entry in history], [entry[x] for entry in history], x=x)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> SearchHistoryDisplay:
        """Plot on `ax`, or on a new figure; ImportError if matplotlib is not installed."""
        ax = axes_of(ax)
        self.ax_, self.figure_ = ax, ax.figure
        nmse = np.asarray(self.best_nmse, dtype=np.float64)
        drawn = np.isfinite(nmse)
        losses = log_losses(nmse[drawn])
        progress = np.asarray(self.progress, dtype=np.float64)[drawn]
        marker = "o" if len(progress) == 1 else None  # a line through one point is invisible
        self.line_: Line2D
        (self.line_,) = ax.step(progress, losses.values, where="post", marker=marker, markersize=4)
        if len(progress):
            scale_losses(ax, losses)
        else:
            ax.text(0.5, 0.5, "no search", transform=ax.transAxes, ha="center", va="center")
        ax.set(xlabel=self.x, ylabel="loss of the best formula (NMSE)")
        return self


def plot_predictions(
    y: np.ndarray, predicted: np.ndarray, *, ax: Axes | None = None
) -> PredictionErrorDisplay:
    """Plot measured against predicted values of at most 1,000 rows, without rows that are not predicted.

    Parameters
    ----------
    y, predicted : ndarray of shape (n_samples,)
    ax : matplotlib Axes, optional
        Where to plot; by default on a new figure.

    Raises
    ------
    ImportError, ValueError
        If matplotlib is not installed, or no prediction is finite.
    """
    ax = axes_of(ax)
    drawn = np.isfinite(predicted)
    if not drawn.any():
        raise ValueError("The formula is undefined in every row of X; give rows like those of the fit.")
    return PredictionErrorDisplay.from_predictions(
        y[drawn], predicted[drawn], kind="actual_vs_predicted", ax=ax, random_state=0
    )
