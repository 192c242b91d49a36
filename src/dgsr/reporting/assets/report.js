"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const rows = [...document.querySelectorAll("tr[data-candidate]")];
  const points = [...document.querySelectorAll(".point")];
  const standing = byId("standing").textContent;
  let selected = -1;

  // --- selecting a candidate ------------------------------------------------------------------

  function select(index) {
    if (index === selected) return;
    const isFirst = selected === -1;
    selected = index;
    const candidate = data.candidates[index];
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
    for (const name of ["complexity", "bits", "nmse", "left_out", "r2", "rmse", "constants", "note"]) byId(name).textContent = candidate[name];
    byId("text").replaceChildren(...breakable(candidate.text));
    const isChosen = index === data.chosen;
    byId("standing").textContent = isChosen
      ? standing
      : `Candidate ${index + 1} of ${rows.length}; another one predicts.`;
    byId("back").hidden = isChosen;
    byId("shown-formula").replaceChildren(...breakable(`Of ${data.target} = ${candidate.text}`));
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

  /** Scroll the table, and nothing else, until the row can be seen. */
  function reveal(row) {
    const table = byId("table");
    const top = row.offsetTop - table.querySelector("thead").offsetHeight;
    if (top < table.scrollTop) table.scrollTop = top;
    const bottom = row.offsetTop + row.offsetHeight - table.clientHeight;
    if (bottom > table.scrollTop) table.scrollTop = Math.min(bottom, top);
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
      reveal(rows[index]);
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
      reveal(rows[index]);
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
      reveal(rows[data.chosen]);
      rows[data.chosen].querySelector("input").focus({ preventScroll: true });
    });
    byId("copy").addEventListener("click", copy);
    window.addEventListener("resize", fitFormula);
    window.addEventListener("beforeprint", () => (byId("formula").style.fontSize = ""));
    window.addEventListener("afterprint", fitFormula);
  }

  async function copy() {
    const button = byId("copy");
    try {
      await navigator.clipboard.writeText(data.candidates[selected].text);
      button.textContent = "Copied";
    } catch {
      // Without a clipboard, select the text so that the keyboard can copy it.
      window.getSelection().selectAllChildren(byId("text"));
      button.textContent = "Marked";
    }
    setTimeout(() => (button.textContent = "Copy"), 1600);
  }

  // --- plots of predictions -------------------------------------------------------------------

  // As in dgsr/reporting/charts.py.
  const frame = { left: 66, right: 466, top: 14, bottom: 278, width: 480, height: 330 };

  function drawPredictions(candidate) {
    const values = [];
    for (const [i, residual] of candidate.residuals.entries()) {
      const measured = data.measured[i];
      if (residual === null || measured === null) continue;
      values.push({ row: data.rows[i], measured, predicted: measured - residual, residual });
    }
    const both = values.flatMap((value) => [value.measured, value.predicted]);
    const span = axisOf(both);
    const rowsShown = `${values.length} ${values.length === 1 ? "row" : "rows"}`;
    drawScatter(byId("predicted-chart"), {
      values: values.map((value) => [value.measured, value.predicted, value]),
      x: span,
      y: span,
      names: ["measured", "predicted"],
      guide: [
        [span.low, span.low],
        [span.high, span.high],
      ],
      label: `Predicted against measured, ${rowsShown}, R² ${candidate.r2}`,
    });
    const x = axisOf(values.map((value) => value.predicted));
    const y = axisOf(values.flatMap((value) => [value.residual, -value.residual]));
    drawScatter(byId("residual-chart"), {
      values: values.map((value) => [value.predicted, value.residual, value]),
      x,
      y,
      names: ["predicted", "measured − predicted"],
      guide: [
        [x.low, 0],
        [x.high, 0],
      ],
      label: `Residuals against predicted, ${rowsShown}, root mean square ${candidate.rmse}`,
    });
  }

  /** Return the ends of an axis that has room for all values, and its ticks. */
  function axisOf(values) {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) [low, high] = [0, 1];
    const margin = high > low ? (high - low) * 0.05 : Math.abs(low) * 0.1 || 1;
    low -= margin;
    high += margin;
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
    const ticks = [];
    for (let i = Math.ceil(low / step); i <= Math.floor(high / step) && ticks.length < 9; i++) ticks.push(i * step);
    return { low, high, ticks };
  }

  function drawScatter(chart, { values, x, y, names, guide, label }) {
    const place = (axis, value, start, end) =>
      (start + ((value - axis.low) / (axis.high - axis.low)) * (end - start)).toFixed(2);
    const right = (value) => place(x, value, frame.left, frame.right);
    const down = (value) => place(y, value, frame.bottom, frame.top);
    const parts = [];
    for (const tick of x.ticks) {
      const at = right(tick);
      parts.push(element("path", { class: "grid", d: `M${at} ${frame.top}V${frame.bottom}` }));
      const placed = { class: "tick", x: at, y: frame.bottom + 18, "text-anchor": "middle" };
      parts.push(element("text", placed, written(tick)));
    }
    for (const tick of y.ticks) {
      const at = down(tick);
      parts.push(element("path", { class: "grid", d: `M${frame.left} ${at}H${frame.right}` }));
      const placed = { class: "tick", x: frame.left - 8, y: at, dy: ".35em", "text-anchor": "end" };
      parts.push(element("text", placed, written(tick)));
    }
    parts.push(element("path", { class: "axis", d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}` }));
    const [[x0, y0], [x1, y1]] = guide;
    parts.push(element("path", { class: "guide", d: `M${right(x0)} ${down(y0)}L${right(x1)} ${down(y1)}` }));
    const middle = (frame.top + frame.bottom) / 2;
    const below = { class: "name", x: (frame.left + frame.right) / 2, y: frame.height - 8, "text-anchor": "middle" };
    parts.push(element("text", below, names[0]));
    const beside = { class: "name", transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle" };
    parts.push(element("text", beside, names[1]));
    const isMany = values.length > 150;
    const group = element("g", { class: isMany ? "many" : "few" });
    for (const [a, b, value] of values) {
      const circle = element("circle", { class: "value", cx: right(a), cy: down(b), r: isMany ? 2.6 : 4 });
      const precise = (number) => written(Number(number.toPrecision(6)));
      const about = `row ${value.row}: measured ${precise(value.measured)}, predicted ${precise(value.predicted)}`;
      circle.append(element("title", {}, about));
      group.append(circle);
    }
    chart.replaceChildren(...parts, group);
    chart.setAttribute("aria-label", label);
  }

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** Write a number as dgsr.reporting.numbers does. */
  function written(value) {
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
