"""The result of a fit as plain values, for JSON, and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dgsr
from dgsr.cli.output import print_line, print_table
from dgsr.cli.quoting import lines_text
from dgsr.reporting.numbers import finite

if TYPE_CHECKING:
    from dgsr.estimator.regressor import DGSRRegressor


def result_of(regressor: DGSRRegressor, target: str) -> dict[str, Any]:
    """Return the result of a fit as plain values for JSON.

    Its seconds are those at the last entry of the history, without compiling and finishing.
    """
    front = regressor.pareto_front_
    has_units = any(candidate.units for candidate in front)
    return {
        "target": target,
        "formula": regressor.expression_.text,
        "constants": front.candidate_of(regressor.expression_).constants_text(),
        "common_forms": [
            {"name": name, "column": column} for name, column in regressor.expression_.common_forms
        ],
        "pareto_front": [
            {
                "complexity": int(candidate.complexity),
                "description_length": round(candidate.description_length, 2),
                "nmse": finite(candidate.loss),
                "leave_one_out": finite(candidate.leave_one_out),
                "formula": candidate.expression.text,
                "constants": candidate.expression.constants.tolist(),
                "standard_errors": [finite(error) for error in candidate.standard_errors.tolist()],
                **({"units": list(candidate.units)} if has_units else {}),
                **({"parts": candidate.parts} if candidate.parts else {}),
                "chosen": candidate.expression == regressor.expression_,
            }
            for candidate in front
        ],
        **_groups_of(regressor),
        "rivals": front.rivals(front.index_of(regressor.expression_)),
        "n_evaluations": int(regressor.n_evaluations_),
        "seconds": round(regressor.history_[-1]["seconds"], 3) if regressor.history_ else 0.0,
        "random_state": regressor.random_state_,
        "loss": regressor.loss_,
        "stop_reason": str(regressor.stop_reason_),
        "version": dgsr.__version__,
    }


def _groups_of(regressor: DGSRRegressor) -> dict[str, Any]:
    """Return the constants by group of the chosen formula, None where it has none; nothing without groups."""
    if getattr(regressor, "groups_", None) is None:
        return {}
    table = regressor.constants_by_group_
    own = {
        str(label): {name: finite(value) for name, value in row.items()} for label, row in table.iterrows()
    }
    return {"constants_by_group": own if len(table.columns) else None}


def _test_line(test: dict[str, Any]) -> str:
    """Return a line on the fit of the chosen formula to the rows held out."""
    found = "no value, because the formula is not finite in some row or the target does not vary there"
    if test["r2"] is not None:
        found = f"R2 {test['r2']:.4g}, NMSE {test['nmse']:.3g}"
    return f"on {test['n_rows']:,} rows held out before the fit, drawn by the seed {test['seed']}: {found}"


def _shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}"


def print_result(regressor: DGSRRegressor, result: dict[str, Any], all_rows: bool) -> None:
    """Print the front of a fit and its formula as text, of a long front the rows about the chosen one."""
    from dgsr.cli.names import legend, short_names, with_short_names
    from dgsr.reporting.facts import window

    front = regressor.pareto_front_
    chosen = front.index_of(regressor.expression_)
    parts = result["pareto_front"][chosen].get("parts", {})
    taken = (result["target"], *(part.partition("(")[0] for part in parts))  # of a form
    names = short_names(regressor.expression_.feature_names, taken)
    has_units = any(candidate.units for candidate in front)
    rows = []
    for index, (row, candidate) in enumerate(zip(result["pareto_front"], front, strict=True)):
        cells = {
            "": ">" if row["chosen"] else "",
            "index": index,
            "complexity": row["complexity"],
            "bits": f"{row['description_length']:.1f}",
            "NMSE": _shown(row["nmse"]),
            "leave-one-out": _shown(row["leave_one_out"]),
            "formula": with_short_names(candidate.expression.shortened(), taken).text,
        }
        rows.append(cells | ({"constants": candidate.units_text()} if has_units else {}))
    first, last = (0, len(rows)) if all_rows else window(chosen, len(rows))
    print_table(rows[first:last])
    if last - first < len(rows):
        print_line(f"formulas {first} to {last - 1} of {len(rows)}; --all prints the others, too")
    for line in legend([front[i].expression for i in {*range(first, last), *result["rivals"]}], taken):
        print_line(line)
    print_line()
    print_line(f"{result['target']} = {with_short_names(regressor.expression_, taken).text}")
    if result["constants"]:
        print_line(f"constants, with standard errors: {result['constants']}")
    if own := result.get("constants_by_group"):
        print_table([{regressor.constants_by_group_.index.name: label, **row} for label, row in own.items()])
    for name, text in parts.items():
        print_line(f"{name} = {text}")
    for form in result["common_forms"]:
        print_line(f"in {names.get(form['column'], form['column'])} it has a form known as: {form['name']}")
    if rivals := [f"formula {i}, {rows[i]['formula']}" for i in result["rivals"]]:
        print_line(f"of another form, and within 3 bits of it: {'; '.join(rivals)}")
    if result["loss"] == "relative":
        print_line("errors count in proportion to the target")
    if lines := result.get("lines_left_out"):
        print_line(f"left out as outliers: {lines_text(lines, most=20)} of the table")
    if "test" in result:
        print_line(_test_line(result["test"]))
    seed = "" if result["random_state"] is None else f", random state {result['random_state']}"
    speed = result["n_evaluations"] / max(result["seconds"], 1e-3)
    print_line(
        f"{result['n_evaluations']:,} evaluations in {result['seconds']:.1f} s of search "
        f"({speed:,.0f} a second){seed}; stopped: {result['stop_reason']}"
    )
