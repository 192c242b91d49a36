"""The SVG plots of a report that are the same for all candidates; `assets/report.js` draws the others."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dgsr.pareto import ParetoFront
from dgsr.pareto.display import LogLosses, log_losses
from dgsr.reporting.numbers import counted, number

#: Left end of the horizontal axis, in units of the SVG. `report.js` has the same value of this and of the
#: next three, and `report.html` has the size of every plot, as `_plot` below.
LEFT = 78
#: Right end of the horizontal axis.
RIGHT = 466
#: Upper end of the vertical axis.
TOP = 14
#: Lower end of the vertical axis.
BOTTOM = 278
# Most ticks of an axis, without one for losses of 0.
_MAX_TICKS = 6


class Axis(NamedTuple):
    """An axis that shows the values from `low` to `high` on a line from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[tuple[float, str]]
    is_log: bool = False

    def place(self, value: float) -> float:
        low, high = (math.log10(self.low), math.log10(self.high)) if self.is_log else (self.low, self.high)
        at = math.log10(value) if self.is_log else value
        return round(self.start + (at - low) / (high - low) * (self.end - self.start), 2)


def front_chart(front: ParetoFront, chosen: int) -> str:
    """Return a plot of errors against bits; ``data-candidate`` of each point is the candidate's index."""
    losses = log_losses([candidate.error for candidate in front])
    bits = [candidate.description_length for candidate in front]
    x, y = _linear_axis(min(bits) - 1.0, max(bits) + 1.0), _log_axis(losses)
    at = [(x.place(b), y.place(loss)) for b, loss in zip(bits, losses.values.tolist())]
    points = []
    for i, (candidate, (right, down)) in enumerate(zip(front, at)):
        error = f"NMSE {number(candidate.error)} on rows left out"
        what = f"{bits[i]:.1f} bits, {error}: {candidate.expression.text}"
        # A diamond marks the candidate that predicts, since not all readers distinguish colours.
        mark = f'<path class="ring" d="M{right} {down - 11}l11 11-11 11-11-11z"/>' if i == chosen else ""
        points.append(
            f'<g class="point" data-candidate="{i}" data-x="{right}" data-y="{down}">'
            f"<title>{html.escape(what)}</title>{mark}"
            f'<circle class="dot" cx="{right}" cy="{down}" r="5"/></g>'
        )
    return _plot(
        f"Pareto front of {counted(len(front), 'candidate')}: error on rows left out against bits",
        "front-chart",
        _frame(x, y, "description length (bits)", "NMSE on rows left out")
        + f'<path class="line" d="{_steps(at)}"/>'
        + f'<g class="points">{"".join(points)}</g>',
        role="group",
    )


def history_chart(history: Sequence[dict[str, Any]]) -> str:
    """Return a plot of the best formula's loss after every round, or an empty string if no loss is finite."""
    rounds = [entry for entry in history if math.isfinite(entry["best_nmse"])]
    if not rounds:
        return ""
    losses = log_losses([entry["best_nmse"] for entry in rounds])
    x, y = _linear_axis(0.0, max(rounds[-1]["seconds"], 1e-6)), _log_axis(losses)
    at = [(x.place(entry["seconds"]), y.place(loss)) for entry, loss in zip(rounds, losses.values.tolist())]
    last = rounds[-1]
    label = (
        f"NMSE of the best formula over the search: {number(rounds[0]['best_nmse'])} at first, "
        f"{number(last['best_nmse'])} after {number(last['seconds'])} seconds"
    )
    dots = "".join(f'<circle class="small dot" cx="{right}" cy="{down}" r="2.5"/>' for right, down in at)
    return _plot(
        label,
        "history-chart",
        _frame(x, y, "seconds", "NMSE") + f'<path class="line" d="{_steps(at)}"/>' + dots,
    )


def _plot(label: str, name: str, inside: str, role: str = "img") -> str:
    return (
        f'<svg id="{name}" class="plot" viewBox="0 0 480 330" role="{role}" '
        f'aria-label="{html.escape(label)}">{inside}</svg>'
    )


def _steps(points: Sequence[tuple[float, float]]) -> str:
    """Return an SVG path of steps, since the lowest loss changes only at a point."""
    (right, down), *rest = points
    return f"M{right} {down}" + "".join(f"H{right}V{down}" for right, down in rest)


def _frame(x: Axis, y: Axis, x_name: str, y_name: str) -> str:
    """Return the axes with their grid, ticks and names."""
    parts = []
    for value, label in x.ticks:
        at = x.place(value)
        parts.append(f'<path class="grid" d="M{at} {TOP}V{BOTTOM}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{BOTTOM + 18}" text-anchor="middle">{label}</text>')
    for value, label in y.ticks:
        at = y.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {at}H{RIGHT}"/>')
        beside = f'x="{LEFT - 8}" y="{at}" dy=".35em" text-anchor="end"'
        parts.append(f'<text class="tick" {beside}>{label}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>')
    anchor = 'text-anchor="middle"'
    parts.append(f'<text class="name" x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 44}" {anchor}>{x_name}</text>')
    turned = f"translate(14 {(TOP + BOTTOM) / 2}) rotate(-90)"
    parts.append(f'<text class="name" transform="{turned}" {anchor}>{y_name}</text>')
    return f'<g aria-hidden="true">{"".join(parts)}</g>'


def _linear_axis(low: float, high: float) -> Axis:
    return Axis(low, high, LEFT, RIGHT, [(tick, number(tick, 6)) for tick in _round_ticks(low, high)])


def _log_axis(losses: LogLosses) -> Axis:
    """Return an axis on which losses of 0 are drawn at their floor, which has the tick 0."""
    values, floor = losses
    # With these bounds the ends of the axis and their ratio are finite.
    low, high = max(float(values.min()), 1e-150), min(float(values.max()), 1e150)
    margin = max((high / low) ** 0.06, 1.15)
    low, high = low / margin, high * margin
    ticks = [(tick, number(tick)) for tick in _log_ticks(low if floor is None else floor * 2, high)]
    if floor is not None:
        ticks.insert(0, (floor, "0"))
    return Axis(low, high, BOTTOM, TOP, ticks, is_log=True)


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten as ticks or, if there are fewer than two, multiples of them or round numbers."""
    if high <= low:
        return []
    exponents = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    every = max(math.ceil(len(exponents) / _MAX_TICKS), 1)
    ticks = [float(f"1e{exponent}") for exponent in exponents if exponent % every == 0]
    if len(ticks) >= 2:
        return ticks
    first = math.floor(math.log10(low))
    multiples = [float(f"{digit}e{first + i}") for i in range(3) for digit in (1, 2, 5)]
    ticks = [tick for tick in multiples if low <= tick <= high]
    return ticks if len(ticks) >= 3 else _round_ticks(low, high)


def _round_ticks(low: float, high: float) -> list[float]:
    """Return at most six ticks between two numbers, multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / (_MAX_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]
