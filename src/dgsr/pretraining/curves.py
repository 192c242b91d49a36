"""A picture of the curves of a training: log-likelihoods of the true program, and hit rates."""

from __future__ import annotations

import io
from collections.abc import Sequence


def _by_data(figure: str) -> tuple[tuple[str, str, str], ...]:
    """Return the lines of a figure that is measured with the right data, without any and with others."""
    names = ("own data", "right", "#0072b2"), ("none", "none", "#999999"), ("another's", "wrong", "#d55e00")
    return tuple((name, f"{figure}_{data}", colour) for name, data, colour in names)


# Titles, and lines by name, key and colour, for any colour vision (Okabe and Ito, 2008).
_PANELS = (
    ("nats of the true program", _by_data("log_likelihood")),
    (
        "share found in the first samples",
        (("100", "hit_100", "#0072b2"), ("10", "hit_10", "#009e73"), ("1", "hit_1", "#e69f00")),
    ),
    ("nats of the parent-child pairs", _by_data("guide_nats")),
)


def to_svg(curves: Sequence[dict[str, float]], equations_a_step: int) -> str | None:
    """Return plots of the measured figures against the number of training equations, as one SVG.

    `curves` has the points as in a card, at least one. The result is None without matplotlib. Each line is a
    group whose id is the key of its figures.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return None
    seen = [point["step"] * equations_a_step for point in curves]
    panels = [(title, [line for line in lines if line[1] in curves[0]]) for title, lines in _PANELS]
    panels = [(title, lines) for title, lines in panels if lines]
    figure = Figure(figsize=(4.2 * len(panels), 2.8), layout="constrained")
    for ax, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for name, key, colour in lines:
            (line,) = ax.plot(seen, [point[key] for point in curves], color=colour, label=name)
            line.set_gid(key)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("equations")
        ax.ticklabel_format(axis="x", style="sci", scilimits=(4, 5))
        ax.legend(fontsize=8)
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "dgsr"}):  # text as text, and equal files
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
