"""The HTML report of a fit, which shows formula, front, predictions, search and settings."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.files.writing import write_atomically
from dgsr.reporting.charts import front_chart, history_chart
from dgsr.reporting.facts import (
    Judged,
    Rows,
    caveats,
    judged,
    particulars,
    rivals_text,
    rule_of_choice,
    snippet,
    window,
)
from dgsr.reporting.numbers import counted, number, share_explained
from dgsr.reporting.plots import OUTLIER, drawn, kinds_of
from dgsr.reporting.standard_errors import with_standard_errors

# Descriptions of the formula that each rule of selection chooses.
_REASONS = {
    "mdl": "the shortest description of formula and residuals together",
    "bic": "the lowest Bayes information criterion",
    "score": "the steepest fall of the loss for its complexity",
    "accuracy": "the lowest error, also on rows left out",
    "holdout": "the lowest loss on rows held out of the fit",
}
# The numbers below a formula: name, qualification, and id in the page. Those of rows held out are omitted
# where there are no such rows.
_METRICS = (
    ("Length", "in bits", "bits"),
    ("Complexity", "", "complexity"),
    ("NMSE", "of the fit", "nmse"),
    ("NMSE", "leave-one-out", "left_out"),
    ("NMSE", "held out", "held_out"),
    ("R²", "here", "r2"),
    ("R²", "held out", "test_r2"),
    ("RMS residual", "here", "rmse"),
)
# The marks of rows by their kinds, as `report.js` draws them, and what they mean.
_MARKS = (
    ('<circle class="value" cx="7" cy="7" r="4"/>', "row"),
    ('<circle class="value test" cx="7" cy="7" r="4"/>', "row held out of the fit"),
    ('<path class="value outlier" d="M3 3l8 8m0-8l-8 8"/>', "outlier that the fit left out"),
)
# Most outliers whose numbers are listed.
_MOST_NAMED = 20


def write_report(
    estimator: Any,
    path: str | Path,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    target: str = "y",
    title: str | None = None,
    test: tuple[Any, ...] | None = None,
    outliers: Sequence[int] = (),
    notes: Sequence[str] = (),
    command: str | None = None,
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
    test : tuple (X, y) or (X, y, sample_weight), optional
        Rows held out of the fit, to be shown beside the others.
    outliers : sequence of int
        Indices of the rows of `X` that the fit left out, which are marked.
    notes : sequence of str
        Sentences about the data, for example on columns that were left out.
    command : str, optional
        Command that repeats the fit.

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
        If `X`, `y`, `sample_weight` or `test` do not match the fit.
    OSError
        If the file cannot be written; an existing file is then unchanged.
    """
    if not hasattr(type(estimator), "sympy_expr_"):
        raise TypeError(
            f"A report needs a DGSRRegressor, not a {type(estimator).__name__}; give the last step of a "
            "pipeline with the X that this step is given, or best_estimator_ of a search."
        )
    check_is_fitted(estimator)
    rows = _checked(estimator, X, y, sample_weight, outliers)
    held_out = None if test is None else _checked(estimator, *test)
    kinds = kinds_of(len(rows.y), 0 if held_out is None else len(held_out.y), outliers)
    texts = {
        "title": html.escape(title or f"A formula for {target}"),
        "notes": _items([*notes, *_data_notes(estimator, kinds)]),
        "command": f'<pre><code id="command">{html.escape(command)}</code></pre>\n' if command else "",
        "snippet": html.escape(snippet(estimator, weighted=sample_weight is not None)),
    }
    page = Template(_asset("report.html")).substitute(texts | _page(estimator, rows, held_out, kinds, target))
    # A lone surrogate in a name, which UTF-8 cannot encode, is written as its number.
    write_atomically(Path(path), page.encode(errors="backslashreplace"))
    return Path(path)


def _checked(estimator: Any, X: Any, y: Any, sample_weight: Any = None, outliers: Sequence[int] = ()) -> Rows:
    """Return the rows as arrays; outliers have the weight 0."""
    numbers = np.zeros((len(y), 0))
    if estimator.group_column_ == estimator.n_features_in_:  # of groups, which are no feature
        X, numbers = X[:, :-1], X[:, -1:]
    X, y = validate_data(estimator, X, y, reset=False, dtype=np.float64, y_numeric=True)
    X = np.hstack([X, numbers])
    weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True).copy()
    if any(not 0 <= row < len(X) for row in outliers):
        raise ValueError(f"outliers={[*outliers]} must be indices of rows of X, from 0 to {len(X) - 1}.")
    weights[list(outliers)] = 0.0
    if not weights.any():
        raise ValueError("sample_weight is 0 in every row but outliers; give some row a weight above 0.")
    return Rows(X, np.asarray(y, dtype=np.float64), weights)


def _page(estimator: Any, rows: Rows, test: Rows | None, kinds: np.ndarray, target: str) -> dict[str, str]:
    """Return the parts of the page that depend on the rows, by their names in the template."""
    front = estimator.pareto_front_
    chosen = front.index_of(estimator.expression_)
    candidates = [(judged(one, rows), None if test is None else judged(one, test)) for one in front]
    described = [_described(one, tested, target) for one, tested in candidates]
    if front.held_out is not None:
        for described_one, loss in zip(described, front.held_out.tolist()):
            described_one["held_out"] = number(loss, keep_zeros=True)
    shown, (first, last) = described[chosen], window(chosen, len(front))
    style, script = _asset("report.css"), _asset("report.js")
    weighted = rows.weights > 0.0
    data = drawn(candidates, rows, test, kinds, estimator.loss_ == "relative", estimator.group_column_)
    data["candidates"] = [one | curves for one, curves in zip(described, data["candidates"])]
    return {
        **{name: html.escape(shown[name]) for name in ("constants", "form", "note")},
        "target": html.escape(target),
        "lead": html.escape(_lead(estimator, len(rows.y), target)),
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}",
        "style": style,
        "script": script,
        "formula": shown["mathml"],
        "text": _breakable(shown["text"]),
        "standing": _reason(estimator),
        "metrics": "\n".join(
            f'<div><dt>{name} <span>{of}</span></dt><dd id="{key}">{html.escape(shown[key])}</dd></div>'
            for name, of, key in _METRICS
            if key in shown
        ),
        "front_hint": _front_hint(len(front), front.n_left_off),
        "front_chart": front_chart(front, chosen),
        "front_note": _front_note([one for one, _ in candidates]),
        "rows": "\n".join(
            _table_row(i, one, i == chosen, not first <= i < last) for i, one in enumerate(described)
        ),
        "unfold": f"Show all {len(front)} candidates" if last - first < len(front) else "",
        "keys": _keys(kinds),
        "sample": _sample_note(len(data["rows"]), len(kinds)),
        "symmetries": _symmetries(estimator._symmetries_of(rows.X[weighted], rows.y[weighted], target)),
        "history": _history(estimator),
        "caveats": _items(caveats(estimator)),
        "particulars": "\n".join(
            f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd></div>"
            for name, text in particulars(estimator, len(rows.y), len(kinds) - len(rows.y))
        ),
        "data": _json({"target": target, "chosen": chosen} | data),
    }


def _described(shown: Judged, tested: Judged | None, target: str) -> dict[str, Any]:
    """Return the texts that the page shows for a candidate."""
    candidate, expression = shown.candidate, shown.candidate.expression
    mathml, others = with_standard_errors(candidate)
    equation = f"<mi>{html.escape(target)}</mi><mo>=</mo>{_inside(mathml)}"
    constants = candidate.constants_text(others)
    # A formula may have a form twice.
    forms = dict.fromkeys(f"{name}, in {column}" for name, column in expression.common_forms)
    note = f"Undefined on {counted(shown.n_undefined, 'row')}, which the plots leave out."
    try:
        python = expression.to_python()
    except ValueError:  # a user's operator has no sympy form
        python = ""
    texts = {
        "mathml": f'<math display="block"><mrow>{equation}</mrow></math>',
        "text": expression.text,
        "latex": expression.latex,
        "python": python,
        "complexity": str(candidate.complexity),
        "bits": f"{candidate.description_length:.1f}",
        "nmse": number(candidate.loss, keep_zeros=True),
        "left_out": number(candidate.leave_one_out, keep_zeros=True),
        "constants": " ".join(
            [f"Other constants, with standard errors: {constants}."] * bool(constants) + _by_group(expression)
        ),
        "r2": share_explained(shown.r2),
        "rmse": number(shown.rmse, keep_zeros=True),
        "form": f"Known form: {'; '.join(forms)}." if forms else "",
        "note": note if shown.n_undefined else "",
    }
    return texts if tested is None else texts | {"test_r2": share_explained(tested.r2)}


def _by_group(expression: Expression) -> list[str]:
    """Return a sentence with the constants of each group, if the formula has some."""
    if not isinstance(expression, GroupedExpression):
        return []
    own, errors = expression.by_group.values.T, expression.by_group.standard_errors.T
    groups = [
        f"{label}: "
        + ", ".join(
            f"{name} = {number(value)} ± {number(error, 2)}"
            for name, value, error in zip(expression.by_group.names, of_group, its_errors)
        )
        for label, of_group, its_errors in zip(expression.by_group.labels, own, errors)
    ]
    column = expression.feature_names[expression.by_group.column]
    return [f"Constants by {column}: {'; '.join(groups)}."]


def _table_row(i: int, shown: dict[str, Any], is_chosen: bool, is_folded: bool) -> str:
    checked, classes, badge = "", ' class="folded"' if is_folded else "", ""
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
    about = " Errors count in proportion to the target." if estimator.loss_ == "relative" else ""
    return f"{lead} Of {tried} tried, {n} {'is' if n == 1 else 'are'} on the front.{about}"


def _data_notes(estimator: Any, kinds: np.ndarray) -> list[str]:
    """Return sentences on rows that the fit held out or left out."""
    notes = []
    if estimator.pareto_front_.held_out is not None:
        notes.append("The fit held out a quarter of its rows, by which selection='holdout' chooses.")
    if estimator.loss_.endswith("without outliers"):
        rows = getattr(estimator, "outliers_", None)  # a file has none
        what = "outliers"
        if rows is not None:
            named = ", ".join(str(row + 1) for row in rows[:_MOST_NAMED]) + ", …" * (len(rows) > _MOST_NAMED)
            what = f"{counted(len(rows), 'outlier')} (row {named}, counted from 1)"
        counts = "is that of the other rows" if OUTLIER in kinds else "counts them if they are among the rows"
        notes.append(f"The fit left out {what}. R² {counts}.")
    return notes


def _keys(kinds: np.ndarray) -> str:
    """Return the legend of the marks in plots of the rows, empty if all are alike."""
    if not kinds.any():
        return ""
    marks = [_MARKS[kind] for kind in np.unique(kinds).tolist()]
    return "".join(
        f'<span class="key"><svg class="plot" viewBox="0 0 14 14" aria-hidden="true">{mark}</svg>'
        f"{meaning}</span>"
        for mark, meaning in marks
    )


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
            f"{n_candidates} candidates, each with a lower error on rows left out than all before it; the "
            'diamond marks the chosen one. <span class="script">Select one, in the plot or the table, to see '
            "it above and below.</span>"
        )
    if n_left_off:
        hint += " Left off for what the rows cannot show, such as a pole between two of them: "
        hint += f"{counted(n_left_off, 'formula')}."
    return hint


def _front_note(candidates: list[Judged]) -> str:
    note = "In the table NMSE is of the fit, and R² of the rows of this report."
    if any(shown.candidate.error == 0 for shown in candidates):
        note += " An error of exactly 0, which a logarithmic axis has no place for, is drawn at the tick 0."
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


def _json(content: Any) -> str:
    """Return JSON in which an HTML parser finds neither the end of a script nor a comment."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _breakable(formula: str) -> str:
    """Return a formula as HTML with line breaks allowed after `*`, `/` and brackets, not within a name."""
    return re.sub(r"(?<=[*/(])(?!\*)", "<wbr>", html.escape(formula))


def _items(sentences: Sequence[str]) -> str:
    """Return the items of a list in HTML."""
    return "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)


def _asset(name: str) -> str:
    return resources.files("dgsr.reporting").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the source expression of a content security policy that allows this text alone."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inside(mathml: str) -> str:
    """Return the content of a ``math`` element."""
    return mathml[mathml.index(">") + 1 : mathml.rindex("<")]
