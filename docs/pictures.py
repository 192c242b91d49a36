"""Draw the pictures of the pages: `python docs/pictures.py`; with `--fit` the fit of the front is done again.

Each is an SVG with a background of its own, light or dark as the reader's system is, so that it can be read
on any page. With `--fit` a browser also takes the picture of the fit's report, which needs playwright,
chromium and Pillow.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import rooms

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
FRONT = FOLDER / "front.json"
HARD_FRONTS = ROOT / "benchmarks" / "results" / "fronts.json"
ABSORPTION = ROOT / "examples" / "data" / "absorption.csv"

STYLE = """
.paper { fill: #ffffff } .line { fill: none; stroke: #555555; stroke-width: 1.3 } .tip { fill: #555555 }
text { fill: #1b1b1b; font-family: sans-serif; font-size: 13px }
.small { font-size: 11px } .bold { font-weight: bold } .code { font-family: monospace }
.faint { fill: #6b6b6b } .grid { fill: none; stroke: #d5d5d5 }
.box { stroke: #555555; stroke-width: 1 } .a { fill: #dcebf7 } .b { fill: #fbe9d0 } .c { fill: #d9f0e6 }
.d { fill: #ececec } .mark { fill: #b04a00 } .curve { fill: none; stroke: #0072b2; stroke-width: 2 }
.dot { fill: #0072b2 } .chosen { fill: #d55e00 } .fitted { fill: none; stroke: #d55e00; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
.paper { fill: #16181c } .line { stroke: #b5b5b5 } .tip { fill: #b5b5b5 } text { fill: #ededed }
.faint { fill: #a8a8a8 } .grid { stroke: #3c3f45 } .box { stroke: #b5b5b5 } .a { fill: #1f3a52 }
.b { fill: #54401f } .c { fill: #1d4537 } .d { fill: #33363c } .mark { fill: #ffb37a }
.curve { stroke: #56b4e9 } .dot { fill: #56b4e9 } .chosen { fill: #ff9a4d } .fitted { stroke: #ff9a4d }
}"""


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """Return a whole picture; `title` is what a screen reader says."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}\n</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="tip" d="M0,0L8,4L0,8z"/></marker></defs>\n'
        f'<rect class="paper" width="{width}" height="{height}" rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, lines: Sequence[str]) -> str:
    """A box around (x, y), its first line bold."""
    drawn = [
        f'<rect class="box {kind}" x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" rx="6"/>'
    ]
    first = y + 4 - 7.5 * (len(lines) - 1)
    for i, line in enumerate(lines):
        drawn.append(text(x, first + 15 * i, line, "small" if i else "bold", "middle"))
    return "\n".join(drawn)


def arrow(*points: tuple[float, float]) -> str:
    path = "M" + "L".join(f"{x:.0f},{y:.0f}" for x, y in points)
    return f'<path class="line" d="{path}" marker-end="url(#tip)"/>'


def way() -> str:
    """From the table to the formula."""
    parts = [
        box(75, 110, 110, 62, "d", ["table", "X and y"]),
        box(235, 110, 130, 62, "a", ["exact search", "no constants:", "whole laws"]),
        box(425, 110, 150, 62, "c", ["generator", "reads the data,", "writes formulas"]),
        box(625, 110, 150, 62, "b", ["evolution", "crosses and changes", "what was written"]),
        box(625, 235, 150, 62, "b", ["evaluation", "fits the constants,", "measures the error"]),
        box(425, 235, 150, 62, "c", ["next round", "the best nine tenths", "and new formulas"]),
        box(235, 235, 130, 62, "a", ["Pareto front", "the best formula of", "every length in bits"]),
        box(75, 235, 110, 62, "d", ["formula", "rounded to what", "the data can tell"]),
        arrow((130, 110), (168, 110)),
        arrow((300, 110), (348, 110)),
        arrow((500, 110), (548, 110)),
        arrow((625, 141), (625, 202)),
        arrow((550, 235), (502, 235)),
        arrow((425, 204), (425, 143)),
        arrow((590, 266), (590, 292), (235, 292), (235, 268)),
        arrow((170, 235), (132, 235)),
        arrow((235, 79), (235, 48), (10, 48), (10, 235), (18, 235)),
        text(84, 42, "found: done in milliseconds", "small faint"),
        text(525, 168, "round after round, until the", "small faint", "middle"),
        text(525, 184, "budget is spent or the fit exact", "small faint", "middle"),
        text(412, 308, "every formula evaluated", "small faint", "middle"),
    ]
    return svg(720, 322, "The way of the data from the table to the formula", parts)


def front() -> str:
    """The front of a real fit."""
    found = json.loads(FRONT.read_text(encoding="utf-8"))
    # Formulas worse than the mean of the target, which has a loss of 1, are left out.
    chosen = found["front"][found["chosen"]]
    candidates = [candidate for candidate in found["front"] if candidate["error"] <= 1.0]
    left, top, width, height = 60, 46, 300, 190
    most = max(c["bits"] for c in candidates)
    low = math.floor(min(math.log10(c["error"]) for c in candidates))

    def at(bits: float, error: float) -> tuple[float, float]:
        return left + width * bits / most, top + height * math.log10(error) / low

    parts = [
        text(left - 40, 24, "The front: error against length", "bold"),
        text(left + width, top + height + 34, "bits", "small faint", "end"),
        text(left - 52, top - 8, "error on rows left out", "small faint"),
    ]
    for power in range(0, low - 1, -1):
        _, y = at(0, 10.0**power)
        parts.append(f'<path class="grid" d="M{left},{y:.0f}h{width}"/>')
        parts.append(text(left - 6, y + 4, f"{10.0**power:g}", "small faint", "end"))
    for bits in range(0, int(most) + 1, 20):
        x, _ = at(bits, 1.0)
        parts.append(text(x, top + height + 18, str(bits), "small faint", "middle"))
    points = [at(c["bits"], c["error"]) for c in candidates]
    steps = f"M{points[0][0]:.1f},{points[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    parts.append(f'<path class="curve" d="{steps}"/>')
    for i, (x, y) in enumerate(points):
        kind, size = ("chosen", 6) if candidates[i] is chosen else ("dot", 4)
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>')
    x, y = points[candidates.index(chosen)]
    parts.append(text(x + 6, y - 12, "chosen", "mark"))
    return svg(380, 286, "Pareto front of 14 measurements of absorption", parts)


def chosen_formula() -> str:
    """The formula that is chosen from this front, among the measurements."""
    found = json.loads(FRONT.read_text(encoding="utf-8"))
    formula = found["front"][found["chosen"]]["formula"]
    left, top, width, height = 30, 46, 270, 190
    rows, curve = found["rows"], found["curve"]
    right, highest = max(row[0] for row in rows), 1.08 * max(row[1] for row in rows)

    def place(row: Sequence[float]) -> tuple[float, float]:
        return left + width * row[0] / right, top + height * (1.0 - row[1] / highest)

    parts = [
        text(left - 16, 24, formula, "small bold code"),
        f'<path class="line" d="M{left},{top}v{height}h{width}"/>',
        text(left + width, top + height + 34, "concentration", "small faint", "end"),
        text(left + width, top + height + 18, f"{right:g}", "small faint", "end"),
        text(left, top + height + 18, "0", "small faint", "middle"),
        text(left + 6, top + 4, "absorption", "small faint"),
        '<path class="fitted" d="M' + "L".join(f"{x:.1f},{y:.1f}" for x, y in map(place, curve)) + '"/>',
    ]
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in map(place, rows)]
    return svg(330, 286, "The chosen formula among 14 measurements of absorption", parts)


# Of the picture of two fronts: places of the panels, their size, and the range of the axes. Below the lowest
# error, all formulas stand on the last line.
_PANELS, _PANEL = {"Feynman-8": 60, "Feynman-13": 420}, (290, 190)
_MOST_COMPLEX, _LOWEST_POWER = 70, -8
_LINES = {"generator": "curve", "gp": "fitted"}
_MARKS = {"DGSR": "dot", "NGGP": "faint", "GP": "chosen"}


def _steps(front: Sequence[dict[str, float]], at: Callable[[float, float], tuple[float, float]]) -> str:
    """Return the line of the least test NMSE up to each complexity, from where it falls below 1."""
    steps, least = "", 1.0
    for candidate in front:
        if candidate["test_nmse"] < least:
            x, y = at(candidate["complexity"], least)
            least = candidate["test_nmse"]
            steps += f"{'H' if steps else f'M{x:.1f},{y:.1f}H'}{x:.1f}V{at(0.0, least)[1]:.1f}"
    return steps + f"H{at(_MOST_COMPLEX, least)[0]:.1f}" if steps else "M0,0"


def fronts() -> str:
    """Fronts of two laws that no method of the paper finds, beside the formulas that the paper lists."""
    found = json.loads(HARD_FRONTS.read_text(encoding="utf-8"))
    top, (width, height) = 46, _PANEL
    parts = []
    for problem, left in _PANELS.items():

        def at(complexity: float, error: float, left: int = left) -> tuple[float, float]:
            power = max(math.log10(max(error, 1e-300)), _LOWEST_POWER)
            return left + width * complexity / _MOST_COMPLEX, top + height * power / _LOWEST_POWER

        parts += [text(left, 24, problem, "bold"), text(left - 46, top - 8, "test NMSE", "small faint")]
        parts.append(text(left + width, top + height + 34, "complexity C(f)", "small faint", "end"))
        for power in range(0, _LOWEST_POWER - 1, -2):
            _, y = at(0, 10.0**power)
            label = f"{10.0**power:g}" if power > _LOWEST_POWER else f"≤{10.0**power:g}"
            parts.append(f'<path class="grid" d="M{left},{y:.0f}h{width}"/>')
            parts.append(text(left - 6, y + 4, label, "small faint", "end"))
        for complexity in range(0, _MOST_COMPLEX + 1, 10):
            x, _ = at(complexity, 1.0)
            parts.append(text(x, top + height + 18, str(complexity), "small faint", "middle"))
        for run in found["runs"]:
            if run["problem"] == problem:
                parts.append(f'<path class="{_LINES[run["method"]]}" d="{_steps(run["front"], at)}"/>')
        for method, kind in _MARKS.items():
            for x, y in (at(*point) for point in found["published"][problem][method]):
                parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    x = 60.0
    for name, kind in _LINES.items():
        parts.append(f'<path class="{kind}" d="M{x:.0f},296h22"/>')
        parts.append(text(x + 28, 300, name, "small"))
        x += 110
    for name, kind in _MARKS.items():
        parts.append(f'<circle class="{kind}" cx="{x + 6:.0f}" cy="296" r="4"/>')
        parts.append(text(x + 16, 300, f"{name}, published", "small"))
        x += 130
    return svg(730, 316, "Pareto fronts of Feynman-8 and Feynman-13", parts)


# The measures of the picture of the rooms: pixels from floor to floor, the size of a box, each room's column.
_FLOOR, _COLUMN, _BOX = 70, 160, (150, 42)
_COLUMNS = {
    "cli": 2.0, "benchmarking": 3.2, "dgsr": 1.2, "estimator": 2.0, "fitting": 2.0, "search": 2.4,
    "pretraining": 4.4, "generator": 3.6, "finders": 2.4, "reporting": 0.4, "finishing": 2.4, "pareto": 1.0,
    "constants": 1.6, "exact_search": 3.2, "data": 2.4, "problems": 4.4, "expressions": 2.4, "files": 0.8,
    "kernels": 2.8,
}  # fmt: skip
_KINDS = {
    "cli": "a",
    "estimator": "a",
    "search": "b",
    "finders": "b",
    "generator": "c",
    "pretraining": "c",
    "exact_search": "b",
}


def house() -> str:
    """The rooms of the code floor by floor, and who uses whom, as the imports are; see rooms.py."""
    floors = enumerate(rooms.FLOORS)
    places = {room: (84 + _COLUMN * _COLUMNS[room], 34 + _FLOOR * i) for i, floor in floors for room in floor}
    lines = []
    for room, other in rooms.drawn():
        (x, y), (to_x, to_y) = places[room], places[other]
        y, to_y = y + _BOX[1] / 2, to_y - _BOX[1] / 2
        bend = 0.5 * (to_y - y)
        lines.append(
            f'<path class="line" d="M{x:.0f},{y:.0f}C{x:.0f},{y + bend:.0f} {to_x:.0f},{to_y - bend:.0f} '
            f'{to_x:.0f},{to_y:.0f}" marker-end="url(#tip)"/>'
        )
    boxes = [
        box(*places[room], *_BOX, _KINDS.get(room, "d"), [room.rpartition(".")[2], words])
        for room, words in rooms.ROOMS.items()
    ]
    height = 68 + _FLOOR * (len(rooms.FLOORS) - 1)
    return svg(970, height, "The rooms of the code and which uses which", lines + boxes)


PICTURES = {"way": way, "front": front, "chosen": chosen_formula, "fronts": fronts, "rooms": house}


def fit() -> None:
    """Fit the example's measurements and keep what the picture of the front shows."""
    import numpy as np

    from dgsr import DGSRRegressor
    from dgsr.cli.tabular import read_table

    table = read_table(ABSORPTION, "absorption")
    regressor = DGSRRegressor(max_evaluations=500_000, random_state=0).fit(table.X, table.y)
    front = [
        {
            "bits": round(c.description_length, 1),
            "error": float(f"{c.error:.4g}"),
            "formula": str(c.expression.with_feature_names(table.feature_names)),
        }
        for c in regressor.pareto_front_
    ]
    chosen = [c.expression for c in regressor.pareto_front_].index(regressor.expression_)
    x = np.linspace(0.0, table.X.max(), 61)[1:]  # a formula may have no value at 0
    curve = np.column_stack([x, regressor.predict(x[:, None])]).round(4).tolist()
    rows = np.column_stack([table.X[:, 0], table.y]).tolist()
    lines = [f' "{name}": {json.dumps(value)}' for name, value in
             {"chosen": chosen, "front": front, "rows": rows, "curve": curve}.items()]  # fmt: skip
    FRONT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        regressor.with_feature_names(table.feature_names).report(page, target="absorption")
        photograph(page)


def photograph(page: Path) -> None:
    """Take the picture of the upper part of a report, with few colours so that the file is small."""
    from PIL import Image
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        seen = browser.new_page(viewport={"width": 1280, "height": 1150}, color_scheme="light")
        seen.goto(page.as_uri())
        picture = Image.open(io.BytesIO(seen.screenshot()))
        browser.close()
    picture.convert("RGB").quantize(128).save(FOLDER / "report.png", optimize=True)


def outdated() -> list[str]:
    """Return the names of the pictures that are not what this file draws."""
    paths = {name: FOLDER / f"{name}.svg" for name in PICTURES}
    return [
        name
        for name, path in paths.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != PICTURES[name]()
    ]


def main() -> None:
    if "--fit" in sys.argv[1:]:
        fit()
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
