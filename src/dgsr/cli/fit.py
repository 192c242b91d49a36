"""`dgsr fit`: find formulas for one column of a table."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgsr.cli.errors import input_errors, interrupted_code, run_outputs, sigterm_interrupts
from dgsr.cli.options import (
    DATA,
    FORMULAS,
    OUTPUT,
    SEARCH,
    AllOption,
    ColumnsOption,
    DataArgument,
    DecimalMark,
    JsonOption,
    QuietOption,
    ThousandsMark,
)
from dgsr.cli.output import print_json, print_note, progress, warnings_as_notes
from dgsr.cli.quoting import lines_text, units_text
from dgsr.cli.results import print_result, result_of
from dgsr.reporting.progress import SearchProgress, search_line

if TYPE_CHECKING:
    from dgsr.cli.tabular import Table
    from dgsr.estimator.regressor import DGSRRegressor


#: The end of the help; \b keeps its lines from being filled.
EXAMPLES = """\b
Examples, for a table with the columns y, a, b and others:
  dgsr fit data.csv --target y --max-time 60
  dgsr fit data.csv --target y --columns a --columns b --test-size 0.25
  dgsr fit data.csv --target y --units table --save y.dgsr --report y.html
"""


def _whole_number(text: str | int) -> int:
    """Return a whole number above 0, which may be written as 1e6."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number.is_integer() and number >= 1.0):
        raise typer.BadParameter(f"{text!r} is no whole number above 0, such as 1000000 or 1e6.")
    return int(number)


def fit(
    data: DataArgument,
    target: Annotated[
        str,
        DATA(
            help="Column to predict; the others are inputs, but for those of --weights and --groups, unless "
            "--columns names some."
        ),
    ],
    columns: ColumnsOption = None,
    weights: Annotated[
        str | None,
        DATA(help="Column with the weights of the rows; whole numbers without a point are counts."),
    ] = None,
    groups: Annotated[
        str | None,
        DATA(
            help="Column with the labels of groups, such as subjects. A formula has constants by "
            "group where these describe the data more shortly than constants that all share."
        ),
    ] = None,
    decimal: DecimalMark = None,
    thousands: ThousandsMark = None,
    library: Annotated[
        str,
        FORMULAS(
            help="Operators that formulas may have: physics, koza, koza-const or synth; auto is physics."
        ),
    ] = "auto",
    generator: Annotated[
        str,
        SEARCH(
            help="Neural network that proposes formulas: a name that dgsr models lists, or a folder; auto, "
            "untrained or none."
        ),
    ] = "auto",
    max_evaluations: Annotated[
        int,
        SEARCH(
            parser=_whole_number, metavar="INTEGER", help="Most equations to evaluate, such as 500000 or 1e6."
        ),
    ] = 2_000_000,
    max_time: Annotated[float | None, SEARCH(min=0.0, help="Most seconds of search.")] = None,
    loss: Annotated[
        str,
        FORMULAS(
            help="Errors that a formula is judged by: auto, squared, relative, absolute or huber, or the "
            'loss of a row as a formula, such as "log(prediction/target)**2".'
        ),
    ] = "auto",
    selection: Annotated[
        str,
        FORMULAS(
            help="Rule that chooses among the formulas printed: mdl (the shortest description of formula and "
            "errors), bic, score, accuracy or holdout."
        ),
    ] = "mdl",
    complexity: Annotated[
        list[str] | None,
        FORMULAS(
            metavar="NAME=NUMBER",
            help="Complexity of an operator or a column, such as sin=9, so that it is chosen less. May be "
            "repeated.",
        ),
    ] = None,
    nested: Annotated[
        list[str] | None,
        FORMULAS(
            metavar="OUTER/INNER=NUMBER",
            help="Most times that an inner operator may occur on one path below an outer one, such as "
            "exp/log=0 or sin/sin=any. May be repeated.",
        ),
    ] = None,
    lower: Annotated[float | None, FORMULAS(help="Number that no formula is below between the rows.")] = None,
    upper: Annotated[float | None, FORMULAS(help="Number that no formula is above between the rows.")] = None,
    monotone: Annotated[
        list[str] | None,
        FORMULAS(
            metavar="COLUMN=DIRECTION",
            help="Column along which formulas only rise or only fall, such as dose=increasing. May be "
            "repeated.",
        ),
    ] = None,
    at: Annotated[
        list[str] | None,
        FORMULAS(
            metavar="COLUMN=NUMBER,value=NUMBER",
            help="Value of the target that is known, such as dose=0,value=0. May be repeated.",
        ),
    ] = None,
    test_size: Annotated[
        float | None,
        DATA(
            help="Share of the rows, such as 0.25, that is held out of the fit to test the formula on. They "
            "are drawn by --random-state, which is then 0 where none is given."
        ),
    ] = None,
    max_rows: Annotated[
        int,
        SEARCH(min=2, help="Most rows that the search looks at; the numbers in formulas are fitted on more."),
    ] = 200,
    random_state: Annotated[
        int | None,
        SEARCH(
            min=0,
            help="Seed; without --max-time, and with the same --n-jobs, the same seed gives the same result.",
        ),
    ] = None,
    initial_formula: Annotated[
        list[str] | None,
        FORMULAS(
            help="Formula of the columns to begin with; names that are no columns are constants. May be "
            "repeated."
        ),
    ] = None,
    form: Annotated[
        str | None,
        FORMULAS(
            help="Formula with unknown functions to find, such as 'f(T)*g(p, c) + k'; names that are no "
            "columns are constants."
        ),
    ] = None,
    units: Annotated[
        list[str] | None,
        DATA(
            metavar="COLUMN=UNIT",
            help="Unit of a column, such as v=m/s, or table for those in the table. May be repeated.",
        ),
    ] = None,
    y_units: Annotated[str | None, DATA(help="Unit of the target.")] = None,
    unitless_constants: Annotated[
        bool, FORMULAS("--unitless-constants", help="Constants carry no units.")
    ] = False,
    unit_penalty: Annotated[
        float | None,
        FORMULAS(min=0.0, help="What violations of units cost; without it no formula has any."),
    ] = None,
    n_jobs: Annotated[
        int | None, SEARCH(help="Searches in processes of their own; -1 is one for each core.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        SEARCH(help="File to write the search to as it goes; the same call goes on from it."),
    ] = None,
    as_json: JsonOption = False,
    all_rows: AllOption = False,
    save: Annotated[
        Path | None, OUTPUT(help="File to keep the fit in, for dgsr show, dgsr predict and dgsr.load.")
    ] = None,
    report: Annotated[Path | None, OUTPUT(help="File to write an HTML report of the fit to.")] = None,
    quiet: QuietOption = False,
) -> None:
    """Find formulas for one column of a table.

    Prints the best formula of every length, the chosen one marked. Ctrl-C or SIGTERM ends the search and
    prints the best so far.
    """
    from dgsr.cli.held_out import score_of, split
    from dgsr.cli.rules import TABLE, known_units, rules_of, units_of
    from dgsr.cli.tabular import read_table

    line = partial(_search_line, target=target)
    with sigterm_interrupts() as signals:
        with input_errors(signals=signals), warnings_as_notes(), progress(quiet, line) as show:
            check_files({"the table": data}, {"--save": save, "--report": report, "--checkpoint": checkpoint})
            table = read_table(data, target, columns or None, weights, decimal, thousands, groups)
            target = table.target
            for note in table.notes:
                print_note(note)
            rules = rules_of(complexity, nested, monotone, at) | {"lower": lower, "upper": upper}
            known = known_units(table.units)
            rules |= units_of(units, y_units, unitless_constants, unit_penalty, target, known)
            _note_units(table.units, known, TABLE in (units or ()))
            held_out = None
            if test_size is not None:  # the rows and the search have one seed, by which the fit is repeated
                random_state = random_state or 0
                table, held_out = split(table, test_size, random_state)
            from dgsr.estimator.parameters import grouped
            from dgsr.estimator.regressor import DGSRRegressor
            from dgsr.finders import Interrupts

            settings = grouped({"library": library, "max_rows": max_rows, **rules})
            settings |= {"generator": None if generator == "none" else generator, "loss": loss}
            settings |= {"max_evaluations": max_evaluations, "max_time": max_time, "selection": selection}
            settings |= {"random_state": random_state, "initial_formulas": initial_formula or None}
            if table.groups is not None:
                settings["groups"] = table.groups.name
            settings |= {"n_jobs": n_jobs, "checkpoint": checkpoint, "form": form}
            regressor = DGSRRegressor(callback=show, **settings)
            regressor.fit(table.inputs, table.y, table.weights)
            _note_bad_fit(regressor)
        # A Ctrl-C during printing and writing must not lose the results, so it is only recorded.
        with Interrupts() as interrupts:
            regressor.set_params(callback=None)
            result = result_of(regressor, target)
            if len(regressor.outliers_):
                result["lines_left_out"] = table.lines[regressor.outliers_].tolist()
            if held_out is not None:
                score = score_of(regressor.predict(held_out.inputs), held_out)
                result["test"] = score | {"seed": random_state}
            printed = partial(print_result, regressor, result, all_rows)
            outputs: list[Callable[[], None]] = [partial(print_json, result) if as_json else printed]
            if save is not None:
                outputs.append(partial(regressor.save, save, target=target))
            if report is not None:

                def write_report() -> None:
                    options = _report_options(table, held_out, regressor, random_state)
                    with progress(quiet, phase=f"writing {report}"):
                        regressor.report(report, table.inputs, table.y, **options)

                outputs.append(write_report)
            with warnings_as_notes():
                run_outputs(outputs)
    if result["stop_reason"] == "interrupted" or interrupts.n:
        raise typer.Exit(interrupted_code(signals))


def _report_options(
    table: Table, held_out: Table | None, regressor: DGSRRegressor, random_state: int | None
) -> dict[str, Any]:
    """Return what the report of a fit says about its table and its command."""
    command, notes = ["dgsr", *sys.argv[1:]], [*table.notes]
    if random_state is None and regressor.random_state_ is not None:
        command.append(f"--random-state={regressor.random_state_}")
    if len(regressor.outliers_):
        notes.append(f"Outliers in the table: {lines_text(table.lines[regressor.outliers_], most=20)}.")
    test = None
    if held_out is not None:
        test = held_out.inputs, held_out.y, held_out.weights
        n, n_out = len(table.y) + len(held_out.y), len(held_out.y)
        notes.append(f"{n_out:,} of {n:,} rows are held out of the fit, drawn by the seed {random_state}.")
    return {
        "sample_weight": table.weights,
        "target": table.target,
        "test": test,
        "outliers": regressor.outliers_,
        "notes": notes,
        "command": shlex.join(command),
    }


def check_files(inputs: dict[str, Path], outputs: dict[str, Path | None]) -> None:
    """Raise an error unless each output can be written, and to a file of its own.

    The check comes before the search, so that its result is not lost. `inputs` has files by what they are,
    ``-`` for standard input; `outputs` has files by their options, None where an option is not given. Raises
    ValueError if an output is an input or another output, and OSError if one cannot be written.
    """
    from dgsr.files.writing import check_writable

    taken = {name: Path("/dev/stdin") if str(path) == "-" else path for name, path in inputs.items()}
    for option, path in outputs.items():
        if path is None:
            continue
        for other, file in taken.items():
            if _are_one_file(path, file):
                raise ValueError(
                    f"{option} {path} would overwrite {other} {file}, the same file; give {option} another."
                )
        check_writable(path)
        taken[option] = path


def _are_one_file(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.is_file() and path.samefile(other)  # a device, such as /dev/null, may have several
    return os.path.realpath(path) == os.path.realpath(other)


def _note_units(of_table: Mapping[str, str], known: Mapping[str, str], are_used: bool) -> None:
    """Print a note that offers the units of a table, or names those that are used and those that are not."""
    unknown = {name: unit for name, unit in of_table.items() if name not in known}
    if are_used and unknown:
        print_note(
            f"These are no units that pint knows, so that they are not checked: {units_text(unknown)}."
        )
    if known and are_used:
        print_note(f"Formulas are consistent with the units {units_text(known)}.")
    elif known:
        print_note(f"The table has units ({units_text(known)}); --units table has formulas checked by them.")


def _note_bad_fit(regressor: DGSRRegressor) -> None:
    """Print a note if no formula has an NMSE below 1, with what may help."""
    from dgsr.pareto import LEAST_GAIN

    if not min(candidate.loss for candidate in regressor.pareto_front_) < 1.0 - LEAST_GAIN:
        advice = "raise --max-evaluations"
        if not regressor.library_.has_constants:
            advice = f"try --library koza-const, with fitted constants, or {advice}"
        print_note(f"no formula found fits better than the mean of the target; {advice}")


def _search_line(progress: SearchProgress, target: str) -> str:
    from dgsr.cli.names import with_short_names

    best = with_short_names(progress.best_expression, (target,))
    return search_line(replace(progress, best_expression=best))
