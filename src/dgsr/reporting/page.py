"""The HTML report of a fit, which shows formula, front, predictions, search and settings."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dgsr.files.writing import write_atomically
from dgsr.reporting.charts import front_chart, history_chart
from dgsr.reporting.facts import (
    Judged,
    caveats,
    judged,
    particulars,
    rivals_text,
    rule_of_choice,
    sampled_rows,
    snippet,
)
from dgsr.reporting.numbers import counted, number, share_explained

# Descriptions of the formula that each rule of selection chooses.
_REASONS = {
    "mdl": "the shortest description of formula and residuals together",
    "bic": "the lowest Bayes information criterion",
    "score": "the steepest fall of the loss for its complexity",
    "accuracy": "the lowest loss",
    "holdout": "the lowest loss on rows held out of the fit",
}


def write_report(
    estimator: Any,
    path: str | Path,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    target: str = "y",
    title: str | None = None,
) -> Path:
    """Write a fit as one HTML file, which needs no network and can be read without JavaScript.

    Parameters
    ----------
    estimator : DGSRRegressor
        A fitted estimator.
    path : str or Path
        The file to write; an existing file is replaced in one step.
    X : array-like of shape (n_samples, n_features)
        Rows on which the candidates are shown, those of the fit or others.
    y : array-like of shape (n_samples,)
        Target of these rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in R² and the root mean square of the residuals.
    target : str, default="y"
        Name of the target.
    title : str, optional
        Heading of the page.

    Returns
    -------
    Path
        Path of the file. The same fit and data always give the same bytes.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If `estimator` is not fitted.
    TypeError
        If `estimator` is no DGSRRegressor but, for example, a pipeline.
    ValueError
        If `X`, `y` or `sample_weight` do not match the fit.
    OSError
        If the file cannot be written; an existing file is then unchanged.
    """
    if not hasattr(type(estimator), "sympy_expr_"):
        raise TypeError(
            f"A report needs a DGSRRegressor, not a {type(estimator).__name__}; give the last step of a "
            "pipeline with the X that this step is given, or best_estimator_ of a search."
        )
    check_is_fitted(estimator)
    X, y = validate_data(estimator, X, y, reset=False, dtype=np.float64, y_numeric=True)
    y = np.asarray(y, dtype=np.float64)
    weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is 0 in every row; give some row a weight above 0.")
    path = Path(path)
    page = _page(estimator, X, y, weights, sample_weight is not None, target, title)
    # A lone surrogate in a name, which UTF-8 cannot encode, is written as its number.
    write_atomically(path, page.encode(errors="backslashreplace"))
    return path


def _page(
    estimator: Any,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    weighted: bool,
    target: str,
    title: str | None,
) -> str:
    front = estimator.pareto_front_
    chosen = front.index_of(estimator.expression_)
    candidates = [judged(candidate, X, y, weights) for candidate in front]
    described = [_described(candidate, target) for candidate in candidates]
    rows = sampled_rows(len(y))
    residuals = [_values(candidate.residuals[rows], 5) for candidate in candidates]
    style, script = _asset("report.css"), _asset("report.js")
    shown = described[chosen]
    texts = ("complexity", "bits", "nmse", "left_out", "constants", "r2", "rmse", "note")
    values = {
        **{name: html.escape(shown[name]) for name in texts},
        "title": html.escape(title or f"A formula for {target}"),
        "target": html.escape(target),
        "lead": html.escape(_lead(estimator, len(y), target)),
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}",
        "style": style,
        "script": script,
        "formula": shown["mathml"],
        "text": _breakable(shown["text"]),
        "standing": _reason(estimator),
        "front_hint": _front_hint(len(front), front.n_left_off),
        "front_chart": front_chart(front, chosen),
        "front_note": _front_note(candidates),
        "rows": "\n".join(_table_row(i, one, i == chosen) for i, one in enumerate(described)),
        "sample": _sample_note(len(rows), len(y)),
        "symmetries": _symmetries(estimator._symmetries_of(X[weights > 0.0], y[weights > 0.0], target)),
        "history": _history(estimator),
        "snippet": html.escape(snippet(estimator, weighted=weighted)),
        "caveats": "".join(f"<li>{html.escape(caveat)}</li>" for caveat in caveats(estimator)),
        "particulars": "\n".join(
            f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd></div>"
            for name, text in particulars(estimator, len(y))
        ),
        "data": _json(
            {
                "target": target,
                "chosen": chosen,
                "rows": (rows + 1).tolist(),
                "measured": _values(y[rows], _digits_of(y[rows])),
                "candidates": [one | {"residuals": its} for one, its in zip(described, residuals)],
            }
        ),
    }
    return Template(_asset("report.html")).substitute(values)


def _described(shown: Judged, target: str) -> dict[str, Any]:
    """Return the texts that the page shows for a candidate."""
    candidate = shown.candidate
    forms = candidate.expression.common_forms
    notes = [f"In {column} it has a form known as: {name}." for name, column in forms]
    if shown.n_undefined:
        notes.append(f"Undefined on {counted(shown.n_undefined, 'row')}, which the plots leave out.")
    constants = candidate.constants_text()
    equation = f"<mi>{html.escape(target)}</mi><mo>=</mo>{_inside(candidate.expression.mathml)}"
    return {
        "mathml": f'<math display="block"><mrow>{equation}</mrow></math>',
        "text": candidate.expression.text,
        "complexity": str(candidate.complexity),
        "bits": f"{candidate.description_length:.1f}",
        "nmse": number(candidate.loss, keep_zeros=True),
        "left_out": number(candidate.leave_one_out, keep_zeros=True),
        "constants": f"Constants, with standard errors: {constants}." if constants else "",
        "r2": share_explained(shown.r2),
        "rmse": number(shown.rmse, keep_zeros=True),
        "note": " ".join(notes),
    }


def _table_row(i: int, shown: dict[str, Any], is_chosen: bool) -> str:
    checked, classes, badge = "", "", ""
    if is_chosen:
        checked, classes, badge = " checked", ' class="chosen selected"', ' <span class="badge">chosen</span>'
    return (
        f'<tr data-candidate="{i}"{classes}>'
        f'<td class="pick"><input type="radio" name="candidate" id="candidate-{i}" value="{i}" '
        f'autocomplete="off"{checked}></td>'
        f'<td class="number">{shown["bits"]}</td><td class="number">{shown["nmse"]}</td>'
        f'<td class="number r2">{shown["r2"]}</td>'
        f'<td class="formula"><label for="candidate-{i}"><code>{_breakable(shown["text"])}</code></label>'
        f"{badge}</td></tr>"
    )


def _lead(estimator: Any, n_rows: int, target: str) -> str:
    features = counted(estimator.n_features_in_, "feature")
    lead = f"Symbolic regression of {target} on {features}, shown on {counted(n_rows, 'row')}."
    if estimator.n_evaluations_ == 0:
        return lead
    n, tried = len(estimator.pareto_front_), counted(estimator.n_evaluations_, "equation")
    return f"{lead} Of {tried} tried, {n} {'is' if n == 1 else 'are'} on the front.{_about_errors(estimator)}"


def _about_errors(estimator: Any) -> str:
    """Return a sentence on relative errors or on outliers that were left out, or the empty string."""
    if estimator.loss_ == "relative":
        return " Errors count in proportion to the target."
    if not estimator.loss_.endswith("without outliers"):
        return ""
    rows = getattr(estimator, "outliers_", None)  # a file has none
    what = "outliers" if rows is None else counted(len(rows), "outlier")
    return f" The fit left out {what}, which R² counts where they are among the rows shown."


def _reason(estimator: Any) -> str:
    """Return the reason for the choice of the formula that predicts."""
    if estimator.stop_reason_ == "constant target":
        return "The target is the same in every row of the fit, so the formula is that number."
    front = estimator.pareto_front_
    if front.candidate_of(estimator.expression_).loss <= front.tolerance:
        return "The formula that predicts: an exact fit."
    rule = rule_of_choice(estimator)
    reason = f"The formula that predicts is not the one that selection={estimator.selection!r} chooses."
    if rule is not None:
        reason = f"The formula that predicts: {_REASONS[rule]}."
    if rivals := rivals_text(estimator):
        reason += f" Of another form, and within 3 bits of it: {html.escape(rivals)}."
    return reason


def _front_hint(n_candidates: int, n_left_off: int) -> str:
    hint = "There is one candidate."
    if n_candidates > 1:
        hint = (
            f"{n_candidates} candidates, each a better fit than all simpler ones; the diamond marks the "
            'chosen one. <span class="script">Select one, in the plot or the table, to see it above and '
            "below.</span>"
        )
    if n_left_off:
        hint += " Left off for what the rows cannot show, such as a pole between two of them: "
        hint += f"{counted(n_left_off, 'formula')}."
    return hint


def _front_note(candidates: list[Judged]) -> str:
    note = "NMSE is of the fit, R² of the rows of this report."
    if any(shown.candidate.loss == 0 for shown in candidates):
        note += " A loss of exactly 0, which a logarithmic axis has no place for, is drawn at the tick 0."
    return note


def _sample_note(n_shown: int, n_rows: int) -> str:
    if n_shown == n_rows:
        return f"All {counted(n_rows, 'row')}." if n_rows > 1 else "The only row."
    return f"{n_shown:,} of {n_rows:,} rows, a random sample that is always the same; R² is of all rows."


def _symmetries(statements: list[str]) -> str:
    """Return the section on the symmetries of the rows, or the empty string if there are none."""
    if not statements:
        return ""
    shown = "".join(f"<li><code>{_breakable(statement)}</code></li>" for statement in statements)
    return (
        '<section class="card" aria-labelledby="symmetries-heading">\n'
        '<h2 id="symmetries-heading">Symmetries</h2>\n'
        '<p class="hint">The rows show this without any formula, within their error. Where the formula '
        "disagrees, look closer: one of the two is an approximation.</p>\n"
        f'<ul id="symmetries" class="statements">{shown}</ul>\n'
        "</section>\n\n"
    )


def _history(estimator: Any) -> str:
    chart = history_chart(estimator.history_)
    if not chart:
        return '<p class="empty">There was no search.</p>'
    rounds = counted(len(estimator.history_), "round")
    text = f"NMSE of the best formula so far, on the rows of the fit, after each of {rounds}."
    if any(entry["best_nmse"] == 0 for entry in estimator.history_):
        text += " A loss of exactly 0 is drawn at the tick 0."
    return f"<figure>{chart}<figcaption>{text}</figcaption></figure>"


def _digits_of(values: np.ndarray) -> int:
    """Return how many digits show values: nine more than all of them share, at most 17."""
    spread = float(np.ptp(values))
    shared = math.log10(np.abs(values).max() / spread) if spread > 0.0 else 0.0
    return min(9 + max(0, math.ceil(shared)), 17)


def _values(values: np.ndarray, digits: int) -> list[float | None]:
    """Return values rounded to significant digits, None (null in JSON) for those that are not finite."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]


def _json(content: Any) -> str:
    """Return JSON in which an HTML parser finds neither the end of a script nor a comment."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _breakable(formula: str) -> str:
    """Return a formula as HTML with line breaks allowed after `*`, `/` and brackets, not within a name."""
    return re.sub(r"(?<=[*/(])(?!\*)", "<wbr>", html.escape(formula))


def _asset(name: str) -> str:
    return resources.files("dgsr.reporting").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the source expression of a content security policy that allows this text alone."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inside(mathml: str) -> str:
    """Return the content of a ``math`` element."""
    return mathml[mathml.index(">") + 1 : mathml.rindex("<")]
