"""The curves of a training as a picture: log-likelihoods of the true program, and shares of hits."""

from __future__ import annotations

from collections.abc import Sequence

_WIDTH, _HEIGHT, _LEFT, _TOP = 300, 170, 44, 26

# Colours that people with any colour vision can tell apart (Okabe and Ito, 2008).
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


def to_svg(curves: Sequence[dict[str, float]], equations_a_step: int) -> str:
    """Return plots of what was measured against the number of equations trained on, as one SVG.

    Parameters
    ----------
    curves : sequence of dict
        Points of the curves as in a card; at least one.
    equations_a_step : int

    Returns
    -------
    str
    """
    seen = [point["step"] * equations_a_step for point in curves]
    measured = [
        (title, [(name, [p[key] for p in curves], colour) for name, key, colour in lines if key in curves[0]])
        for title, lines in _PANELS
    ]
    measured = [(title, lines) for title, lines in measured if lines]
    panels = [_panel(title, seen, lines, i) for i, (title, lines) in enumerate(measured)]
    width, height = len(panels) * (_WIDTH + _LEFT + 90), _TOP + _HEIGHT + 40
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(panels) + "\n</svg>\n"
    )


def _panel(
    title: str, seen: Sequence[float], lines: Sequence[tuple[str, Sequence[float], str]], place: int
) -> str:
    """Return the SVG of the plot at a place from the left: lines of a name, values and a colour."""
    left, bottom = _LEFT + place * (_WIDTH + _LEFT + 90), _TOP + _HEIGHT
    values = [value for _, points, _ in lines for value in points]
    low, high = min(values), max(values)
    if low >= 0.0:
        low, high = 0.0, max(high, 0.1)
    high = max(high, low + 1e-9)

    def at(x: float, y: float) -> str:
        return f"{left + _WIDTH * x / seen[-1]:.1f},{bottom - _HEIGHT * (y - low) / (high - low):.1f}"

    parts = [
        f'<text x="{left}" y="{_TOP - 10}">{title}</text>',
        f'<path d="M{left},{_TOP}V{bottom}H{left + _WIDTH}" fill="none" stroke="#444"/>',
        f'<text x="{left - 4}" y="{_TOP + 8}" text-anchor="end">{high:.3g}</text>',
        f'<text x="{left - 4}" y="{bottom}" text-anchor="end">{low:.3g}</text>',
        f'<text x="{left + _WIDTH}" y="{bottom + 16}" text-anchor="end">{seen[-1]:,.0f} equations</text>',
    ]
    for i, (name, points, colour) in enumerate(lines):
        path = " ".join(at(x, y) for x, y in zip(seen, points, strict=True))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + _WIDTH + 6}" y="{_TOP + 12 + 16 * i}" fill="{colour}">{name}</text>')
    return "\n".join(parts)
