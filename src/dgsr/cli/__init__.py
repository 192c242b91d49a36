"""The command line: `dgsr fit`, `dgsr models`, `dgsr bench`, `dgsr pretrain`.

Results go to standard output; progress, notes and errors to standard error. Exit codes: 0 done, 1 some runs
of a benchmark failed or a result could not be printed or written, 2 wrong input, 130 interrupted by Ctrl-C,
143 by SIGTERM (`dgsr fit` prints the best formula so far).
Heavy modules are imported inside the commands, so that `dgsr --help` answers at once.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

import dgsr
from dgsr.reporting.progress import printable, search_line, shown

if TYPE_CHECKING:
    from dgsr.generator.checkpoints import GeneratorInfo
    from dgsr.regressor import DGSRRegressor

FAILED = 1
INTERRUPTED, TERMINATED = 130, 143  # as shells report a program ended by Ctrl-C, and by SIGTERM

app = typer.Typer(
    help="Deep Generative Symbolic Regression: from a table of numbers to a formula.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for letters that its encoding lacks
    try:
        app(prog_name="dgsr")
    except OSError as error:
        _complain(error)
        raise SystemExit(FAILED) from None
    finally:
        _drop_what_cannot_be_printed()


def _show_version(asked: bool) -> None:
    if asked:
        _echo(f"dgsr {dgsr.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    data: Annotated[
        Path, typer.Argument(metavar="DATA.csv", help="Table whose first line names the columns.")
    ],
    target: Annotated[str, typer.Option(help="Column to predict; every other one is an input.")],
    library: Annotated[str, typer.Option(help="Token library, or auto.")] = "auto",
    generator: Annotated[
        str, typer.Option(help="Pre-trained generator, a name or a folder; auto, untrained or none.")
    ] = "auto",
    max_evaluations: Annotated[int, typer.Option(min=1, help="Equations to evaluate at most.")] = 2_000_000,
    max_time: Annotated[float | None, typer.Option(min=0.0, help="Seconds to search at most.")] = None,
    random_state: Annotated[
        int | None, typer.Option(min=0, help="Seed; the same seed finds the same.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    save: Annotated[Path | None, typer.Option(help="File to keep the fit in, for dgsr.load.")] = None,
    report: Annotated[Path | None, typer.Option(help="File to write a page of HTML on the fit to.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Find formulas for one column of a table.

    Prints the Pareto front, the chosen formula marked. Ctrl-C or SIGTERM ends the search and prints the best
    so far.
    """
    from dgsr.cli.tabular import read_table
    from dgsr.writing import check_writable

    stderr = Console(stderr=True, highlight=False)
    with _sigterm_interrupts() as signals, _input_errors(signals=signals), _notes(stderr):
        for path in (save, report):
            if path is not None:
                check_writable(path)  # now, and not after the search
        table = read_table(data, target)
        from dgsr.expressions.library import library_over
        from dgsr.regressor import DGSRRegressor
        from dgsr.search.compiling import compile_kernels

        has_constants = library_over(library, len(table.feature_names)).has_constants
        compile_kernels(has_constants, None if quiet else partial(_note, stderr))
        with _progress(stderr, quiet, partial(search_line, names=table.feature_names)) as show:
            regressor = DGSRRegressor(
                library=library,
                generator=None if generator == "none" else generator,
                max_evaluations=max_evaluations,
                max_time=max_time,
                random_state=random_state,
                callback=show,
            )
            regressor.fit(table.X, table.y)
        _note_bad_fit(stderr, regressor)
    result = _result(regressor, target, table.feature_names)
    if as_json:
        outputs = [partial(_print_json, result)]
    else:
        outputs = [partial(_print_result, result, _short_formulas(regressor, table.feature_names))]
    if save is not None:
        outputs.append(partial(regressor.set_params(callback=None).save, save))
    if report is not None:
        named = regressor.with_feature_names(table.feature_names)
        outputs.append(partial(named.report, report, table.X, table.y, target=target))
    with _notes(stderr):
        _give_out(outputs)
    if result["stop_reason"] == "interrupted":
        raise typer.Exit(_exit_code(signals))


@app.command()
def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the pre-trained generators."""
    from dgsr.generator.checkpoints import list_generators

    generators = list_generators()
    if as_json:
        _print_json([{"name": info.name, "path": str(info.path), **info.card} for info in generators])
    elif generators:
        _print_table([_model_row(info) for info in generators])
        _echo()
        _echo("conditioning gap: nats the true program gains from its own data over another data set's")
        _echo("found: share of held-out equations among the first 100 samples")
    else:
        _echo("No pre-trained generator is installed; make one with dgsr pretrain.")


@app.command()
def bench(
    problem_set: Annotated[
        str, typer.Argument(metavar="SET", help="Problem set, such as nguyen or feynman_d2.")
    ],
    problem: Annotated[list[str] | None, typer.Option(help="Only this problem; may be repeated.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="dgsr, untrained, gp; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem.")] = 1,
    budget: Annotated[int, typer.Option(min=1, help="Evaluations of each run.")] = 2_000_000,
    max_time: Annotated[float | None, typer.Option(min=0.0, help="Seconds of search in a run.")] = None,
    noise: Annotated[float, typer.Option(min=0.0, help="Noise on y, in root mean squares of y.")] = 0.0,
    n_jobs: Annotated[int, typer.Option(help="Runs at a time; -1 for one per core.")] = 1,
    out: Annotated[Path | None, typer.Option(help="File to add one line of JSON per run to.")] = None,
) -> None:
    """Measure how often a method recovers the formulas of a problem set."""
    from dgsr.benchmarking import run_set, summarise

    stderr = Console(stderr=True, highlight=False)
    kept = f"the runs so far are in {out}; the same command goes on" if out else "give --out to keep runs"
    methods = method or ["dgsr"]
    options = {} if max_time is None else {name: {"max_time": max_time} for name in methods}
    with _input_errors(f"interrupted; {kept}"), _notes(stderr):
        records = run_set(
            problem_set,
            problems=problem or None,
            methods=methods,
            seeds=seeds,
            budget=budget,
            n_jobs=n_jobs,
            out=out,
            noise=noise,
            options=options,
            callback=lambda record: typer.echo(printable(_run_line(record)), err=True),
        )
    _print_table(summarise(records))
    if any("error" in record for record in records):
        raise typer.Exit(FAILED)


@app.command()
def pretrain(
    library: Annotated[str, typer.Option(help="Token library to learn.")],
    n_variables: Annotated[int, typer.Option(min=1, help="Most input variables the generator will serve.")],
    out: Annotated[Path, typer.Option(help="Folder for weights, card and checkpoints.")],
    objective: Annotated[
        str | None, typer.Option(help="cross-entropy, vpg or risk-seeking.", show_default="cross-entropy")
    ] = None,
    max_time: Annotated[float | None, typer.Option(min=0.0, help="Seconds to train at most.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches to train on.")] = None,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda.")] = "cpu",
    n_workers: Annotated[int, typer.Option(min=0, help="Processes that draw data sets ahead.")] = 0,
    random_state: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on from the last state saved in the folder.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train a generator for a token library."""
    from dgsr.pretraining import pretrain as run

    stderr = Console(stderr=True, highlight=False)
    changes: dict[str, Any] = {"objective": objective, "steps": steps}
    changes = {name: value for name, value in changes.items() if value is not None}
    with (
        _input_errors(f"interrupted; the same command goes on from the last state saved in {out}"),
        _notes(stderr),
        _progress(stderr, quiet, _training_line) as show,
    ):
        run(
            library,
            n_variables,
            out,
            max_time=max_time,
            device=device,
            n_workers=n_workers,
            random_state=random_state,
            resume=resume,
            callback=show,
            **changes,
        )
    _echo(f"The generator is in {out}; use it with dgsr fit --generator {out}")


# --- errors, interruptions, notes and progress ----------------------------------------------------


def _complain(error: Exception) -> None:
    """Say in one line what is wrong; a reader of the output that has left, such as head, need not be told."""
    if not isinstance(error, BrokenPipeError):
        typer.echo(printable(f"error: {error}"), err=True)


@contextmanager
def _input_errors(
    interrupted: str = "interrupted before there was a result", signals: Sequence[int] = ()
) -> Iterator[None]:
    """Say in one line what is wrong with the input, or what an interruption left behind; no traceback."""
    try:
        yield
    except (ValueError, OSError) as error:
        _complain(error)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(printable(interrupted), err=True)
        raise typer.Exit(_exit_code(signals)) from None


@contextmanager
def _sigterm_interrupts() -> Iterator[list[int]]:
    """Let SIGTERM interrupt the block as Ctrl-C does; the list that is given tells whether it came."""
    received: list[int] = []

    def interrupt(number: int, _: Any) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit_code(signals: Sequence[int]) -> int:
    """Return the exit code after an interruption; `signals` are those that `_sigterm_interrupts` noted."""
    return TERMINATED if signals else INTERRUPTED


def _give_out(outputs: Sequence[Callable[[], None]]) -> None:
    """Print and write results in turn; where one fails, the others are given out all the same."""
    failed = False
    for output in outputs:
        try:
            output()
        except OSError as error:
            failed = True
            _complain(error)
    if failed:
        raise typer.Exit(FAILED)


@contextmanager
def _notes(stderr: Console) -> Iterator[None]:
    """Show warnings as notes, one line each, and each only once."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: _note(stderr, str(message))
        yield


def _note(stderr: Console, message: str) -> None:
    stderr.print(Text(printable(f"note: {message}")), soft_wrap=True)


def _progress(stderr: Console, quiet: bool, line: Callable[[Any], str]) -> Any:
    return nullcontext() if quiet else shown(line, stderr)


def _note_bad_fit(stderr: Console, regressor: DGSRRegressor) -> None:
    if not min(candidate.loss for candidate in regressor.pareto_front_) < 1.0:
        mend = (
            "" if regressor.library_.has_constants else "try --library koza-const, with fitted constants, or "
        )
        _note(
            stderr, f"no formula found fits better than the mean of the target; {mend}raise --max-evaluations"
        )


def _training_line(progress: Any) -> str:
    return (
        f"step {progress.step:,} of {progress.steps:,}, {progress.seconds:,.0f} s, loss {progress.loss:.4g}"
    )


def _run_line(record: dict[str, Any]) -> str:
    name = f"{record['problem']} {record['method']} seed {record['seed']}"
    if "error" in record:
        return f"{name}: failed: {record['error']}"
    found = "recovered" if record["recovered"] else "not recovered"
    return f"{name}: {found}, {record['evaluations']:,} evaluations, {record['seconds']:.1f} s"


# --- what is printed ------------------------------------------------------------------------------


def _echo(line: str = "") -> None:
    """Print one line for a person to read."""
    _print(printable(line))


def _print_json(content: Any) -> None:
    _print(json.dumps(content, indent=2, allow_nan=False))


def _print(text: str) -> None:
    try:
        typer.echo(text)
    except OSError as error:
        raise type(error)(
            f"Standard output cannot be written ({error.strerror}); send it to where there is room."
        ) from error


def _drop_what_cannot_be_printed() -> None:
    """Empty the buffer of a full standard output, which would fail once more when Python ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _result(regressor: DGSRRegressor, target: str, feature_names: Sequence[str]) -> dict[str, Any]:
    """What a fit found, as plain values for JSON; variables bear the names of their columns.

    Its seconds are those of the search, without compiling before it and finishing after it.
    """
    return {
        "target": target,
        "formula": str(regressor.expression_.with_feature_names(feature_names).sympy),
        "pareto_front": [
            {
                "complexity": int(candidate.complexity),
                "nmse": _finite(candidate.loss),
                "formula": candidate.expression.with_feature_names(feature_names).text,
                "chosen": candidate.expression == regressor.expression_,
            }
            for candidate in regressor.pareto_front_
        ],
        "n_evaluations": int(regressor.n_evaluations_),
        "seconds": round(regressor.history_[-1]["seconds"], 3) if regressor.history_ else 0.0,
        "stop_reason": str(regressor.stop_reason_),
        "version": dgsr.__version__,
    }


def _short_formulas(regressor: DGSRRegressor, names: Sequence[str]) -> list[str]:
    return [c.expression.with_feature_names(names).shortened().text for c in regressor.pareto_front_]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _print_result(result: dict[str, Any], formulas: Sequence[str]) -> None:
    _print_table(
        [
            {
                "": ">" if row["chosen"] else "",
                "complexity": row["complexity"],
                "NMSE": "not finite" if row["nmse"] is None else f"{row['nmse']:.3g}",
                "formula": formula,
            }
            for row, formula in zip(result["pareto_front"], formulas, strict=True)
        ]
    )
    _echo()
    _echo(f"{result['target']} = {result['formula']}")
    speed = result["n_evaluations"] / max(result["seconds"], 1e-3)
    _echo(
        f"{result['n_evaluations']:,} evaluations in {result['seconds']:.1f} s of search "
        f"({speed:,.0f} a second); stopped: {result['stop_reason']}"
    )


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows with the same keys, numbers to the right; never cut what goes to a file or a pipe."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in rows[0] if rows else ():
        is_number = all(isinstance(row[name], int | float) for row in rows)
        table.add_column(Text(name, style="bold"), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(_cell(value))) for value in row.values()))
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    lines = io.StringIO()
    Console(file=lines, width=10_000, highlight=False).print(table)
    for line in lines.getvalue().splitlines():
        _echo(line.rstrip())  # of the spaces that fill the last column


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "" if value is None else str(value)


def _model_row(info: GeneratorInfo) -> dict[str, Any]:
    card = info.card
    figures = card["validation"]
    return {
        "name": info.name,
        "library": card["library"]["name"],
        "variables": card["library"]["n_variables"],
        "parameters": f"{card['n_parameters']:,}",
        "conditioning gap": round(figures["log_likelihood_right"] - figures["log_likelihood_wrong"], 1),
        "found": f"{figures['hit_100']:.0%}",
        "trained": f"{card['seconds'] / 60:.0f} min",
    }
