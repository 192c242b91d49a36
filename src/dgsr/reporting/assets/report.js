"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const rows = [...document.querySelectorAll("tr[data-candidate]")];
  const points = [...document.querySelectorAll(".point")];
  const copies = [...document.querySelectorAll("[data-copy]")];
  const standing = byId("standing").textContent;
  const unfold = byId("unfold").textContent;
  let selected = -1;

  // --- selecting a candidate ------------------------------------------------------------------

  function select(index) {
    if (index === selected) return;
    const isFirst = selected === -1;
    selected = index;
    const candidate = data.candidates[index];
    rows[index].classList.remove("folded");
    for (const [i, row] of rows.entries()) {
      row.classList.toggle("selected", i === index);
      row.querySelector("input").checked = i === index;
    }
    for (const [i, point] of points.entries()) {
      point.classList.toggle("selected", i === index);
      point.setAttribute("aria-checked", String(i === index));
      point.setAttribute("tabindex", i === index ? "0" : "-1");
    }
    byId("formula").innerHTML = candidate.mathml; // made and escaped by dgsr.expressions.typesetting
    for (const shown of document.querySelectorAll(".metrics dd, #constants, #form, #note")) {
      shown.textContent = candidate[shown.id];
    }
    byId("text").replaceChildren(...breakable(candidate.text));
    const isChosen = index === data.chosen;
    byId("standing").textContent = isChosen
      ? standing
      : `Candidate ${index + 1} of ${rows.length}; another one predicts.`;
    byId("back").hidden = isChosen;
    byId("shown-formula").replaceChildren(...breakable(`Of ${data.target} = ${candidate.text}`));
    for (const button of copies) button.hidden = !candidate[button.dataset.copy];
    byId("source").hidden = true;
    drawPanels(candidate);
    drawPredictions(candidate);
    fitFormula();
    if (!isFirst) byId("announcement").textContent = `${data.target} = ${candidate.text}, R² ${candidate.r2}`;
  }

  /** Make the formula as large as there is room for, down to a size that can still be read, then let it scroll. */
  function fitFormula() {
    const box = byId("formula");
    box.style.fontSize = "";
    const size = parseFloat(getComputedStyle(box).fontSize);
    const share = box.clientWidth / box.scrollWidth;
    if (share < 1) box.style.fontSize = `${Math.max(size * share * 0.99, Math.min(size, 17))}px`;
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; // so that the arrow keys scroll it
    else box.removeAttribute("tabindex");
    box.scrollLeft = 0;
  }

  /** Let the lines of a formula break after an operator or bracket, rather than within a name. */
  function breakable(formula) {
    const pieces = formula.split(/(?<=[*/(])(?!\*)/);
    return pieces.flatMap((piece, i) => (i === 0 ? [piece] : [document.createElement("wbr"), piece]));
  }

  function nearestPoint(event) {
    const chart = byId("front-chart");
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
    let nearest = -1;
    let least = 28;
    for (const [i, point] of points.entries()) {
      const distance = Math.hypot(point.dataset.x - at.x, point.dataset.y - at.y);
      if (distance < least) [nearest, least] = [i, distance];
    }
    return nearest;
  }

  function listen() {
    const group = document.querySelector(".points");
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-label", "Candidates");
    for (const point of points) {
      point.setAttribute("role", "radio");
      point.setAttribute("aria-label", point.querySelector("title").textContent);
    }
    byId("front-chart").addEventListener("click", (event) => {
      const index = nearestPoint(event);
      if (index < 0) return;
      select(index);
    });
    group.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      let index = selected;
      if (event.key in steps) index = (selected + steps[event.key] + points.length) % points.length;
      else if (event.key === "Home") index = 0;
      else if (event.key === "End") index = points.length - 1;
      else if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      select(index);
      points[index].focus();
    });
    for (const [i, row] of rows.entries()) {
      row.addEventListener("click", () => {
        if (String(window.getSelection()) === "") select(i); // else the user is selecting a formula to copy it
      });
      row.querySelector("input").addEventListener("change", () => select(i));
    }
    byId("back").addEventListener("click", () => {
      select(data.chosen);
      rows[data.chosen].querySelector("input").focus({ preventScroll: true });
    });
    for (const button of copies) button.addEventListener("click", () => copy(button));
    byId("unfold").addEventListener("click", () => {
      const isShort = document.querySelector("table").classList.toggle("short");
      byId("unfold").setAttribute("aria-expanded", String(!isShort));
      byId("unfold").textContent = isShort ? unfold : "Show fewer";
    });
    window.addEventListener("resize", fitFormula);
    window.addEventListener("beforeprint", () => (byId("formula").style.fontSize = ""));
    window.addEventListener("afterprint", fitFormula);
  }

  async function copy(button) {
    const label = button.textContent;
    const text = data.candidates[selected][button.dataset.copy];
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without a clipboard, show and select the text so that the keyboard can copy it.
      const source = byId("source");
      source.hidden = false;
      source.value = text;
      source.select();
      button.textContent = "Selected";
    }
    button.disabled = true;
    setTimeout(() => Object.assign(button, { textContent: label, disabled: false }), 1600);
  }

  // --- plots of the rows ----------------------------------------------------------------------

  // As in dgsr/reporting/charts.py.
  const frame = { left: 78, right: 466, top: 14, bottom: 278, width: 480, height: 330 };
  // Panels that are in view, for the columns that change the formula most; the others are folded.
  const mostPanels = 6;

  /** Draw the formula over each column, the others at their medians, through the rows. */
  function drawPanels(candidate) {
    const isOne = data.n_features === 1;
    const panels = data.columns.map((column, j) => {
      const isUsed = candidate.curves[j] !== null;
      const [curve, deviations] = candidate.curves[j] ?? [column.grid.map(() => candidate.level), []];
      const along = column.values.map((value) => interpolated(column.grid, curve, value));
      const values = [];
      for (const [i, x] of column.values.entries()) {
        const residual = candidate.residuals[i];
        // Of one column, the rows themselves; else the part of each row that this column should explain.
        const y = isOne ? data.measured[i] : residual === null || along[i] === null ? null : along[i] + residual;
        if (x !== null && y !== null) values.push([x, y, i]);
      }
      const [low, high] = ends(along);
      return { ...column, isUsed, curve, deviations, values, span: Math.max(high - low, 0) };
    });
    panels.sort((one, other) => other.isUsed - one.isUsed || other.span - one.span);
    const points = panels.flatMap((panel) => panel.values);
    const curves = panels.flatMap(({ curve, deviations }) =>
      curve.flatMap((value, i) => (value === null ? [] : [-2, 2].map((side) => value + side * (deviations[i] ?? 0)))),
    );
    const y = axisOf(inView(points, 1, curves));
    const drawn = panels.map((panel) => drawPanel(panel, y, isOne));
    const nShown = Math.min(Math.max(panels.filter((panel) => panel.isUsed).length, 1), mostPanels);
    byId("panels").replaceChildren(...drawn.slice(0, nShown));
    byId("rows").classList.toggle("single", nShown === 1);
    byId("more").hidden = nShown === panels.length;
    const about = panels[nShown]?.isUsed ? "" : ", not in the formula";
    byId("more").querySelector("summary").textContent = `More columns (${panels.length - nShown}${about})`;
    byId("more").querySelector(".panels").replaceChildren(...drawn.slice(nShown));
    const band = panels.some((panel) => panel.deviations.some((value) => value !== null));
    const notes = isOne
      ? ["The curve is the formula."]
      : [
          "Each curve is the formula over one column, the others at their medians;",
          "the points are the curve plus the residuals of the rows.",
          "The column that changes the formula most comes first.",
        ];
    if (band) notes.push("The band is two standard deviations of a new measurement to each side.");
    if (data.kinds.some((kind) => kind > 0)) {
      notes.push("Rows that were not fitted stand at the edge if they are far beyond it.");
    }
    byId("panels-note").textContent = notes.join(" ");
  }

  function drawPanel(panel, y, isOne) {
    const figure = document.createElement("figure");
    const chart = element("svg", { class: "plot", viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img" });
    const effect = panel.isUsed
      ? `changes ${data.target} by ${written(Number(panel.span.toPrecision(3)))}`
      : "is not in the formula";
    if (!isOne) {
      const heading = document.createElement("h3");
      const about = document.createElement("span");
      about.textContent = effect;
      heading.append(panel.name, " ", about);
      figure.append(heading);
    }
    figure.append(chart);
    draw(chart, {
      values: panel.values,
      x: axisOf(panel.grid),
      y,
      names: [panel.name, data.target],
      curve: panel.grid.map((x, i) => [x, panel.curve[i], panel.deviations[i] ?? null]),
      label: `${data.target} over ${panel.name}, which ${effect}; ${panel.values.length} rows`,
    });
    return figure;
  }

  /** Return the value at x of the line through points whose places are sorted, null where there is none. */
  function interpolated(places, values, x) {
    if (x === null) return null;
    let after = places.findIndex((place) => place >= x);
    if (after < 0) after = places.length - 1; // x is rounded
    const before = places[after] <= x ? after : Math.max(after - 1, 0);
    if (values[before] === null || values[after] === null) return null;
    const share = before === after ? 0 : (x - places[before]) / (places[after] - places[before]);
    return values[before] + share * (values[after] - values[before]);
  }

  function drawPredictions(candidate) {
    const values = [];
    for (const [i, residual] of candidate.residuals.entries()) {
      const measured = data.measured[i];
      if (residual !== null && measured !== null) values.push([measured, measured - residual, residual, i]);
    }
    const span = axisOf([...inView(values, 0), ...inView(values, 1)]);
    const rowsShown = `${values.length} ${values.length === 1 ? "row" : "rows"}`;
    draw(byId("predicted-chart"), {
      values: values.map(([measured, predicted, , i]) => [measured, predicted, i]),
      x: span,
      y: span,
      names: ["measured", "predicted"],
      guide: [span.low, span.high],
      label: `Predicted against measured, ${rowsShown}, R² ${candidate.r2}`,
    });
    draw(byId("residual-chart"), {
      values: values.map(([, predicted, residual, i]) => [predicted, residual, i]),
      x: axisOf(inView(values, 1)),
      y: axisOf(inView(values, 2).flatMap((value) => [value, -value])),
      names: ["predicted", "measured − predicted"],
      guide: [0, 0],
      label: `Residuals against predicted, ${rowsShown}, root mean square ${candidate.rmse}`,
    });
  }

  /**
   * Return what an axis shows of the numbers that points have at one place: those of fitted rows, and rows held out and
   * curves up to half of their range beyond. Outliers do not count, and the rest of a pole is cut off.
   */
  function inView(points, place, curves = []) {
    const of = (kind) => points.filter((point) => data.kinds[point.at(-1)] === kind).map((point) => point[place]);
    const fitted = of(0);
    const [low, high] = ends(fitted);
    const room = (high - low) / 2;
    return [...fitted, ...[...of(1), ...curves].map((value) => Math.min(Math.max(value, low - room), high + room))];
  }

  /** Return the least and the largest of some values, without null; infinities if there are none. */
  function ends(values) {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return [low, high];
  }

  /** Return the ends of an axis that has room for all values, and its ticks. */
  function axisOf(values) {
    let [low, high] = ends(values);
    if (!(low <= high)) [low, high] = [0, 1];
    const margin = high > low ? (high - low) * 0.05 : Math.abs(low) * 0.1 || 1;
    low -= margin;
    high += margin;
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
    const ticks = [];
    for (let i = Math.ceil(low / step); i <= Math.floor(high / step) && ticks.length < 9; i++) ticks.push(i * step);
    // Ticks of 1700000000 and 1700000005 are told apart by as many digits.
    const digits = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / step));
    return { low, high, ticks: ticks.map((tick) => [tick, written(tick, digits)]) };
  }

  /** Draw rows, with a curve and its band through them or a straight guide from the left to the right. */
  function draw(chart, { values, x, y, names, curve, guide, label }) {
    const place = (axis, value, start, end) =>
      (start + ((value - axis.low) / (axis.high - axis.low)) * (end - start)).toFixed(2);
    const right = (value) => place(x, value, frame.left, frame.right);
    const down = (value) => place(y, value, frame.bottom, frame.top);
    const parts = [];
    for (const [tick, text] of x.ticks) {
      const at = right(tick);
      parts.push(element("path", { class: "grid", d: `M${at} ${frame.top}V${frame.bottom}` }));
      const placed = { class: "tick", x: at, y: frame.bottom + 18, "text-anchor": "middle" };
      parts.push(element("text", placed, text));
    }
    for (const [tick, text] of y.ticks) {
      const at = down(tick);
      parts.push(element("path", { class: "grid", d: `M${frame.left} ${at}H${frame.right}` }));
      const placed = { class: "tick", x: frame.left - 8, y: at, dy: ".35em", "text-anchor": "end" };
      parts.push(element("text", placed, text));
    }
    parts.push(element("path", { class: "axis", d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}` }));
    const middle = (frame.top + frame.bottom) / 2;
    const named = { class: "name", x: (frame.left + frame.right) / 2, y: frame.height - 8, "text-anchor": "middle" };
    parts.push(element("text", named, names[0]));
    const beside = { class: "name", transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" };
    parts.push(element("text", beside, names[1]));
    // An inner svg cuts off what is outside of the axes.
    const [width, height] = [frame.right - frame.left, frame.bottom - frame.top];
    const viewBox = `${frame.left} ${frame.top} ${width} ${height}`;
    const inside = { x: frame.left, y: frame.top, width, height, viewBox };
    const [below, above] = [element("svg", inside), element("svg", inside)];
    if (guide) {
      const ends = `M${frame.left} ${down(guide[0])}L${frame.right} ${down(guide[1])}`;
      below.append(element("path", { class: "guide", d: ends }));
    }
    for (const piece of curve ? unbroken(curve, y) : []) {
      const line = (points, side) =>
        points.map(([at, value, deviation]) => `${right(at)} ${down(value + side * deviation)}`);
      const known = piece.filter((point) => point[2] !== null);
      const around = [...line(known, 2), ...line(known, -2).reverse()];
      if (around.length) below.append(element("path", { class: "band", d: `M${around.join("L")}Z` }));
      above.append(element("path", { class: "curve", d: `M${line(piece, 0).join("L")}` }));
    }
    const isMany = values.length > 150;
    const group = element("g", { class: isMany ? "many" : "few" });
    for (const [a, b, i] of values) {
      const cx = Math.min(Math.max(right(a), frame.left), frame.right);
      const cy = Math.min(Math.max(down(b), frame.top), frame.bottom);
      group.append(mark(i, cx, cy, isMany ? 2.6 : 4));
    }
    chart.replaceChildren(...parts, below, group, above);
    chart.setAttribute("aria-label", label);
  }

  /** Return the pieces of a curve, which breaks where it has no value or jumps over the whole axis, as at a pole. */
  function unbroken(curve, axis) {
    const pieces = [[]];
    for (const [i, point] of curve.entries()) {
      const [before, now] = [curve[i - 1]?.[1] ?? null, point[1]];
      const jumps = Math.min(before, now) < axis.low && Math.max(before, now) > axis.high;
      if (now === null || (before !== null && jumps)) pieces.push([]);
      if (now !== null) pieces.at(-1).push(point);
    }
    return pieces.filter((piece) => piece.length);
  }

  /** Return the mark of a row, as in the legend that dgsr/reporting/page.py writes. */
  function mark(i, x, y, size) {
    const kind = ["fit", "test", "outlier"][data.kinds[i]];
    const made =
      kind === "outlier"
        ? element("path", { class: "value outlier", d: `M${x - 4} ${y - 4}l8 8m0-8l-8 8` })
        : element("circle", { class: `value ${kind}`, cx: x, cy: y, r: size });
    const precise = (number) => (number === null ? "not known" : written(Number(number.toPrecision(6))));
    const [measured, residual] = [data.measured[i], data.candidates[selected].residuals[i]];
    const predicted = residual === null ? null : measured - residual;
    const columns = data.columns.slice(0, 8).map((column) => `${column.name} ${precise(column.values[i])}`);
    const name = `${kind === "test" ? "row held out" : "row"} ${data.rows[i]}`;
    const about = `${name}: measured ${precise(measured)}, predicted ${precise(predicted)}`;
    made.append(element("title", {}, [about, ...columns].join("\n")));
    return made;
  }

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** Write a number as dgsr.reporting.numbers does, or with all of its digits if more than six count. */
  function written(value, digits = 6) {
    if (digits > 6) return String(Number(value.toPrecision(Math.min(digits + 1, 17)))).replace("-", "−");
    if (Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4)) {
      const [mantissa, power] = value.toExponential(5).split("e");
      const digits = String(Number(power)).replace(/[-\d]/g, (digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]);
      return `${Number(mantissa)}×10${digits}`.replace("-", "−").replace(/^(−?)1×/, "$1");
    }
    return String(Number(value.toPrecision(10))).replace("-", "−");
  }

  document.documentElement.classList.add("scripted");
  listen();
  select(data.chosen);
})();
