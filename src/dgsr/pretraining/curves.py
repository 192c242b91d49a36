"""A picture of the curves of a training: log-likelihoods of the true program, and hit rates."""

from __future__ import annotations

import io
from collections.abc import Sequence

# Colours that are distinguishable with any colour vision (Okabe and Ito, 2008).
_PANELS = (
    (
        "nats of the true program",
        (
            ("own data", "log_likelihood_right", "#0072b2"),
            ("none", "log_likelihood_none", "#999999"),
            ("another's", "log_likelihood_wrong", "#d55e00"),
        ),
    ),
    (
        "share found in the first samples",
        (("100", "hit_100", "#0072b2"), ("10", "hit_10", "#009e73"), ("1", "hit_1", "#e69f00")),
    ),
    (
        "nats of the parent-child pairs",
        (
            ("own data", "guide_nats_right", "#0072b2"),
            ("none", "guide_nats_none", "#999999"),
            ("another's", "guide_nats_wrong", "#d55e00"),
        ),
    ),
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
