"""Tables are run part by part, summarised with the problem as the unit, and shown as files have them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dgsr.benchmarking import METHODS, read_records, wilson_interval
from dgsr.benchmarking.fits import _warm
from dgsr.benchmarking.record_files import write_records
from dgsr.benchmarking.registry import NAMED_TESTS, TABLES, Table, table_of
from dgsr.benchmarking.runner import UNBOUNDED
from dgsr.benchmarking.summaries import comparisons, mcnemar, summary
from dgsr.benchmarking.table_runs import cells, file_of, n_missing, run_table
from dgsr.cli import app
from dgsr.expressions import Expression, get_library
from dgsr.problems import list_sets, load_set

ROOT = Path(__file__).parents[2]


class Product:
    """Answers x1*x2, which is right for Feynman-1 alone."""

    fits = 0

    def __init__(self, library, max_evaluations, max_length, random_state, max_time):
        self.library, self.random_state = library, random_state

    def fit(self, X, y):
        Product.fits += 1
        library = get_library(self.library, X.shape[1])
        self.expression_ = Expression.from_text("x1*x2" if X.shape[1] > 1 else "x1", library)
        self.pareto_front_ = []
        self.n_evaluations_, self.n_examined_, self.stop_reason_ = 10 + self.random_state, 5, "product"
        return self

    def predict(self, X):
        return self.expression_(X)


@pytest.fixture(scope="module", autouse=True)
def methods():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("product", "other"):
            patch.setitem(METHODS, name, Product)
            _warm.update((name, library) for library in ("koza", "physics"))
        yield
    _warm.clear()


@pytest.fixture(scope="module")
def folder(methods, tmp_path_factory):
    """A folder with the file of the small table."""
    path = tmp_path_factory.mktemp("tables")
    run_table(SMALL, path)
    return path


SMALL = Table(
    "small",
    "A small table",
    ("feynman_d2",),
    seeds=2,
    max_time=3.0,
    budget=100,
    methods=("product", "other"),
    noise=(0.0, 0.01),
)


@pytest.fixture
def notes(monkeypatch):
    """What pages say beside our runs."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("table_notes")


# --- the tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_names_sets_and_methods_that_exist(table):
    assert set(table.methods) <= set(METHODS)
    assert table.is_drawn or set(table.sets) <= set(list_sets())
    assert table.n_runs == len(set(table.problems)) * len(table.methods) * table.seeds * len(table.noise)
    assert len(table.problems) >= 60


def test_published_figures_and_notes_are_of_tables(notes):
    assert {*notes.NOTES} == {*TABLES}
    for name, figures in notes.PUBLISHED.items():
        assert {figure.set for figure in figures} <= set(TABLES[name].sets)
        assert all("paper" in figure.source for figure in figures)


def test_the_tables_take_a_night():
    assert sum(table.core_hours for table in TABLES.values()) <= 8.0


def test_the_named_tests_are_few_and_of_runs_that_are_made():
    assert len(set(NAMED_TESTS)) == len(NAMED_TESTS) <= 10
    for test in NAMED_TESTS:
        table = TABLES[test.table]
        assert test.noise in table.noise
        assert {test.first, test.second} <= set(table.methods)
        assert test.verdict == "found" or (test.verdict == "form" and table.is_drawn)


@pytest.mark.parametrize("name", ["nguyen", "nguyen_c", "r", "livermore", "feynman_d2", "feynman_d5"])
def test_the_published_recovery_is_the_mean_of_that_of_the_problems(notes, name):
    of_problems = [problem.paper_recovery for problem in load_set(name)]
    for figure in [each for each in notes.PUBLISHED["paper"] if each.set == name][:2]:
        rates = [recovery[figure.method] for recovery in of_problems]
        assert sum(rates) / len(rates) == pytest.approx(figure.recovery, abs=0.02)


def test_an_unknown_table_is_named_with_those_close_to_it():
    with pytest.raises(ValueError, match="table='srbensh' is unknown; choose from srbench"):
        table_of("srbensh")


# --- runs -----------------------------------------------------------------------------------------


def test_a_table_goes_on_where_its_file_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(Product, "fits", 0)
    seen = []

    def stop_after_some(record):
        seen.append(record)
        if len(seen) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_table(SMALL, tmp_path, callback=stop_after_some)
    found = cells(SMALL, read_records(file_of(SMALL, tmp_path)))
    assert sum(n_missing(SMALL, found).values()) == SMALL.n_runs - 20
    records = run_table(SMALL, tmp_path)
    assert Product.fits == SMALL.n_runs == len(records) == 7 * 2 * 2 * 2
    assert [record["seed"] for record in records] == [0] * 28 + [1] * 28
    assert {(r["noise"], r["rows"]) for r in records} == {(0.0, 20), (0.01, 20)}
    assert all(record["parameters"] == {} and record["options"] == {"max_time": 3.0} for record in records)
    assert n_missing(SMALL, cells(SMALL, records)) == {}
    run_table(SMALL, tmp_path)
    assert Product.fits == SMALL.n_runs


def test_a_table_without_time_makes_no_run(tmp_path):
    assert run_table(SMALL, tmp_path / "tables", until=0.0) == []


def test_a_table_of_a_drawn_set_runs_too(tmp_path):
    limits = {"seeds": 1, "max_time": 3.0, "budget": 100, "methods": ("product",)}
    table = Table("drawn", "Drawn", ("drawn:laws",), **limits, n_problems=2, draw_seed=3)
    records = run_table(table, tmp_path)
    assert [record["problem"] for record in records] == table.problems
    assert n_missing(table, cells(table, records)) == {}


def test_records_of_other_runs_and_failures_are_no_cells_of_a_table(folder):
    one, *_ = read_records(file_of(SMALL, folder))
    others = {"budget": 99, "noise": 0.5, "seed": 2, "method": "gp", "problem": "Nguyen-1", "error": "no"}
    others |= {"options": {"max_time": 4.0}}
    for name, value in others.items():
        assert not any(cells(SMALL, [{**one, name: value}]).values()), name
    assert sum(map(len, cells(SMALL, [one, one]).values())) == 1


# --- summaries ------------------------------------------------------------------------------------


def runs(problem, found, evaluations, budget=100, **more):
    """Return a run of one problem for each seed."""
    result = {"seconds": 1.0, "looks": 1, "problem": problem, "budget": budget, **more}
    return [
        {**result, "seed": seed, "recovered": bool(each), "evaluations": n}
        for seed, (each, n) in enumerate(zip(found, evaluations))
    ]


def test_the_problem_is_the_unit_and_all_runs_count():
    records = runs("a", [1, 1], [10, 20]) + runs("b", [1, 0], [30, 90], seconds=3.0)
    result = summary("gp", records + runs("c", [0, 0], [90, 90]))
    assert (result.n_problems, result.n_runs, result.n_found) == (3, 6, 1)
    assert result.recovery == pytest.approx(50.0)
    assert (result.low, result.high) == pytest.approx([100 * end for end in wilson_interval(1.5, 3)])
    assert result.seconds == pytest.approx(10 / 6)
    assert result.candidates == pytest.approx(330 / 6 + 1)
    assert result.evaluations == pytest.approx((15 + 65 + 100) / 3)
    assert result.evaluations_of_solved == pytest.approx(40)


def test_equations_until_found_are_not_counted_where_seconds_alone_limit_a_run():
    result = summary("gp", runs("a", [1, 0], [10, 20], budget=UNBOUNDED))
    assert result.evaluations is None
    assert result.evaluations_of_solved is None


def test_ten_seeds_of_a_problem_are_one_observation():
    one = summary("gp", [record for name in "abcdefg" for record in runs(name, [1], [5])])
    ten = summary("gp", [record for name in "abcdefg" for record in runs(name, [1] * 10, [5] * 10)])
    assert one[4:8] == ten[4:8]
    assert one.low == pytest.approx(100 * wilson_interval(7, 7)[0])


def test_the_average_of_the_paper_leaves_out_the_problem_that_nothing_found(notes):
    # Its table of equation evaluations on Feynman d=2, DGSR: Feynman-4 was not found.
    counts = [10_002, 197_062, 10_010, None, 10_008, 118_335, 53_011]
    records = [
        record
        for number, n in enumerate(counts)
        for record in runs(str(number), [n is not None], [n or 0], budget=2_000_000)
    ]
    (figure, *_) = notes.PUBLISHED["paper"]
    result = summary("dgsr", records)
    assert int(result.evaluations_of_solved) == figure.evaluations == 66_404
    assert result.evaluations == pytest.approx((sum(filter(None, counts)) + 2_000_000) / 7)


def test_methods_are_compared_over_problems_on_the_seeds_that_both_ran():
    first = runs("a", [1, 1, 0], [1] * 3) + runs("b", [1], [1]) + runs("c", [1], [1]) + runs("d", [0], [1])
    second = runs("a", [0, 1], [1] * 2) + runs("b", [0], [1]) + runs("c", [1], [1]) + runs("d", [1], [1])
    (pair,) = comparisons({"x": first, "y": second, "z": []})
    assert pair == ("x", "y", 4, 2, 1, mcnemar(2, 1))


def test_accurate_formulas_are_counted_whether_they_are_the_law_or_not():
    records = runs("a", [1, 0], [1, 1], test_nmse=0.9e-3, complexity=9)
    records += runs("b", [0, 1], [1, 1], test_nmse=1e-3, complexity=4) + runs("b", [0], [1], test_nmse=None)
    result = summary("gp", records)
    assert (result.accuracy, result.complexity) == (50.0, 6.5)
    assert summary("gp", runs("a", [1], [1])).complexity is None


def test_without_looks_candidates_are_unknown():
    assert summary("gp", runs("a", [1], [5], looks=None)).candidates is None


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture
def docs(monkeypatch):
    """The programs that make the summary and the pages of tables, and the one that checks figures."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return [importlib.import_module(name) for name in ("benchmark_tables", "table_pages", "marked_figures")]


@pytest.mark.slow
def test_the_pages_are_what_the_files_say(docs):
    made = docs[0].pages()
    assert {*made} == {docs[0].PAGE, *docs[0].PAGES.glob("*.md")}
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text
    assert len(made[docs[0].PAGE].split()) <= 1500  # three pages


def test_the_table_of_the_readme_is_what_the_files_say(docs):
    table = importlib.import_module("readme_table")
    readme = table.README.read_text(encoding="utf-8")
    assert table.with_table(readme) == readme
    rows = table.readme_table().splitlines()
    assert len(rows) <= 7
    assert all(row.count("|") == rows[0].count("|") for row in rows)


def runs_of(table, found=lambda record: True):
    """Records of all runs of a table, of which some found the law."""
    records = [
        {"problem": problem, "seed": seed, "method": method, "noise": noise, "budget": table.budget,
         "max_time": table.max_time, "evaluations": 10, "looks": 5, "seconds": 0.5, "test_nmse": 0.25}
        for problem in table.problems for seed in range(table.seeds) for method in table.methods
        for noise in table.noise
    ]  # fmt: skip
    for record in records:
        record |= {"found": found(record), "form": found(record), "on_front": True}
    return records


def is_even(record):
    return int(record["problem"][-1]) % 2 == 0


def test_a_row_of_the_readme_counts_what_each_method_finds(docs, tmp_path):
    readme = importlib.import_module("readme_table")
    for name in {row.table for row in readme.ROWS}:
        records = runs_of(TABLES[name], lambda record: record["method"] == "dgsr")
        write_records(file_of(TABLES[name], tmp_path), records)
    table = TABLES["drawn_laws"]
    records = runs_of(table, lambda record: record["method"] == "dgsr" or is_even(record))
    write_records(file_of(table, tmp_path), records)
    rows = readme.readme_table(tmp_path).splitlines()
    low, high = (100 * end for end in wilson_interval(30, 60))
    shares = f"100% (94–100) | 50% ({low:.0f}–{high:.0f})"  # noqa: RUF001
    assert rows[2].startswith("| 133 SRBench problems, 10 s | 100% (97–100) | 0% (0–3) |")  # noqa: RUF001
    assert rows[3] == f"| 60 laws drawn at random, 5 s | {shares} | `drawn_laws` |"
    assert rows[5].startswith("| 60 laws in 30 columns, 1% noise, 15 s | 100% (94–100) | 0% (0–6) |")  # noqa: RUF001


def test_the_summary_has_both_verdicts_tests_and_failures(docs, tmp_path):
    summary_page, *_ = docs
    table = TABLES["drawn_laws"]
    path = file_of(table, tmp_path)
    write_records(path, runs_of(table, lambda record: record["method"] != "gp" or is_even(record)))
    text = summary_page.page(tmp_path)
    low, high = (100 * end for end in wilson_interval(30, 60))
    for verdict in ("found", "form"):
        all_found = "100 (94–100)"  # noqa: RUF001
        row = f"| 60 [Laws drawn afresh](tables/drawn_laws.md) | 0.01 | {verdict} | 0.5 | {all_found} |"
        half = f"{all_found} | {all_found} | 50 ({low:.0f}–{high:.0f}) | {all_found} |"  # noqa: RUF001
        assert f"{row} {half}" in text.splitlines()
    p = mcnemar(30, 0)
    test = f"| Laws drawn afresh | 0.01 | form | `generator` | `gp` | 30 | 0 | {p:.2g} | {10 * p:.2g} |"
    assert test in text.splitlines()
    assert "- Laws drawn afresh with noise of 0.01: 0 of 60 runs miss the law.\n" in text
    write_records(path, runs_of(table, is_even))
    missed = "30 of 60 runs miss the law, 30 of them with the law on the front and 0 with its form chosen.\n"
    assert missed in summary_page.page(tmp_path)
    some = [record for record in runs_of(table) if record["method"] != "gp" or is_even(record)]
    write_records(path, some)
    assert "| Laws drawn afresh | 0.01 | form | `generator` | `gp` |" not in summary_page.page(tmp_path)
    assert "No table has a file yet." in summary_page.page(tmp_path / "none")


def test_holms_correction_is_that_of_the_number_of_tests(docs):
    holm = docs[0].holm
    assert holm([0.01, 0.04, 0.03], 3) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.04, 0.3], 10) == pytest.approx([0.4, 1.0])
    assert holm([], 10) == []


def test_the_sets_of_the_paper_have_rows_of_their_own(docs, tmp_path):
    table = TABLES["paper"]
    write_records(file_of(table, tmp_path), runs_of(table, lambda record: record["seed"] < 2))
    assert "| nguyen | 12 | 66.7 | 66.7 | 66.7 | 87.5 | 91.7 |" in docs[0].page(tmp_path).splitlines()
    lines = docs[0].pages(tmp_path)[docs[0].PAGES / "paper.md"].splitlines()
    assert "## nguyen-c" in lines
    row = "| R-2 | `(x1**5-3*x1**3+1)/(x1**2+1)` | 2 of 3 | 2 of 3 | 2 of 3 | 0 | 0 |"
    assert row in lines
    assert any(
        line.startswith("| DGSR (DGSR paper, table of R rationals) |  | 51.66 ± 7.23 |") for line in lines
    )


def test_a_long_set_lists_the_laws_that_no_run_found(docs, tmp_path):
    table = TABLES["srbench"]
    records = runs_of(table, lambda record: record["problem"] != "feynman_I_9_18")
    write_records(file_of(table, tmp_path), records)
    lines = docs[0].pages(tmp_path)[docs[0].PAGES / "srbench.md"].splitlines()
    assert sum(line.startswith("| feynman_") for line in lines) == 1
    assert any(line.startswith("| feynman_I_9_18 | `") and line.endswith(" | 2.5e-01 |") for line in lines)


@pytest.fixture
def tables(monkeypatch, docs, notes):
    monkeypatch.setitem(TABLES, "small", SMALL)
    figure = notes.Published("feynman_d2", "DGSR", 85.36, "a paper", 0.69, 66_404)
    monkeypatch.setitem(notes.PUBLISHED, "small", (figure,))
    return docs[1:]


def test_a_page_says_commit_machine_and_missing_runs(tables, folder):
    page, _ = tables
    records = read_records(file_of(SMALL, folder))
    text = page.table_page(SMALL, cells(SMALL, records))
    assert "dgsr bench --table small --out benchmarks/results/tables\n" in text
    assert f"processor {records[0]['environment']['processor']}; no run is missing." in text
    assert f"Commit {records[0]['environment']['commit'][:40]}" in text
    low, high = (100 * end for end in wilson_interval(1, 7))
    row = f"`product` | 1 of 7 | 14.3 ({low:.1f} to {high:.1f}) |"
    assert text.count(row) == 2  # of both levels of noise
    assert "| 0 | DGSR (a paper) |  | 85.36 ± 0.69 |  |  |  |  | 66,404 |" in text
    assert "| 0.01 | found | `product` | `other` | 7 | 0 | 0 | 1 |" in text
    missing = "missing runs: product at noise 0 3 of 14, other at noise 0 2 of 14."
    assert missing in page.table_page(SMALL, cells(SMALL, records[5:]))


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("1 of 7<!-- table small product found -->", None),
        ("14.3%<!-- table small product recovery -->", None),
        ("14 %<!-- table small other recovery noise=0.01 -->", None),
        ("1,000 or 87<!-- table small product evaluations -->", None),
        (
            "88<!-- table small product evaluations -->",
            "88, marked as table small product evaluations: the file has",
        ),
        ("2 of 7<!-- table small product found -->", "the file has 1 of 7"),
        ("much<!-- table small product seconds -->", "no figure"),
        ("1<!-- table small product luck -->", "there is no such entry"),
        ("1<!-- table small gp found -->", "the file has no such runs"),
        ("1<!-- table laws dgsr found -->", "there is no laws.jsonl.gz"),
        ("1<!-- table large dgsr found -->", "table='large' is unknown"),
        ("1<!-- a comment on a table -->", None),
        ("0 and 0 (p = 1)<!-- pair small product other -->", None),
        ("0 and 0<!-- pair small product other -->", None),
        ("1 and 0<!-- pair small product other -->", "the file has 0 and 0, p = 1"),
        ("0 and 0 (p = 0.5)<!-- pair small product other -->", "the file has 0 and 0, p = 1"),
        ("one and 0<!-- pair small product other -->", "no figure, marked as pair small product other"),
        ("0 and 1<!-- pair small product gp -->", "the file has no such runs"),
    ],
)
def test_a_marked_figure_is_that_of_the_file(tables, folder, cell, complaint):
    found = tables[1].wrong_figures(f"| Feynman | {cell} |\n", folder)
    assert (found == []) if complaint is None else (complaint in found[0] and len(found) == 1)


def test_zeros_at_the_end_of_a_large_number_are_rounded_digits(docs):
    rounded = docs[2]._is_rounded
    assert rounded("287,000", 287_390)
    assert not rounded("287,000", 287_600)
    assert not rounded("100", 98.8)
    assert rounded("0.18", 0.1849)


# --- the command ----------------------------------------------------------------------------------


def bench(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


def test_the_list_of_tables_has_their_hours():
    lines = bench("--tables").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == list(TABLES)
    assert lines[-1].endswith("hours on one core")


def test_the_command_runs_a_table_and_goes_on_with_it(monkeypatch, tmp_path):
    monkeypatch.setitem(TABLES, "small", replace(SMALL, noise=(0.0,)))
    result = bench("--table", "small", "--out", str(tmp_path), "--hours", "1")
    assert result.exit_code == 0, result.stderr
    assert "Feynman-1 product seed 0: recovered, 10 evaluations" in result.stderr
    assert "small: 28 of 28 runs" in result.stdout
    again = bench("--table", "small", "--out", str(tmp_path))
    assert (again.stdout, again.stderr) == (result.stdout, "")
    some = bench("--table", "small", "--method", "other", "--out", str(tmp_path))
    assert "small: 14 of 14 runs" in some.stdout
    late = bench("--table", "small", "--out", str(tmp_path / "x"), "--hours", "0")
    assert "small: 0 of 28 runs" in late.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "SET is missing; give a problem set, --table NAME"),
        (["nguyen", "--table", "laws"], "SET is not for tables"),
        (["--table", "laws", "--seeds", "3"], "--seeds is not for tables"),
        (["--table", "rr"], "table='rr' is unknown"),
        (["nguyen", "--hours", "1"], "--hours is for tables"),
        (["--table", "laws", "--method", "gp"], "methods=['gp'] are not in the table laws; choose"),
    ],
)
def test_what_a_table_has_of_its_own_is_refused(arguments, message):
    result = bench(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
