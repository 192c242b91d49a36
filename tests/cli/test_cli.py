"""The command line and its reading of tables."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import dgsr
from dgsr import pretraining
from dgsr.benchmarking import METHODS
from dgsr.cli import app, main, output
from dgsr.cli.held_out import score_of, split
from dgsr.cli.tabular import Table, TableError, read_table
from dgsr.constants.uncertainty import Uncertainty
from dgsr.estimator import saving
from dgsr.expressions import Expression, get_library
from dgsr.generator import checkpoints
from dgsr.pareto import Candidate, ParetoFront
from dgsr.reporting.facts import window
from dgsr.reporting.progress import SearchProgress

DGSR = [sys.executable, "-c", "from dgsr.cli import main; main()"]


@pytest.fixture
def write(tmp_path):
    """Write a CSV file and return its path as text."""

    def write(content: str | bytes, name: str = "data.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def run(*arguments: str):
    return CliRunner().invoke(app, arguments)


# --- reading a table ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "a,y,b\n1,2,3\n4,5,6\n",
        "a;y;b\r\n1;2;3\r\n4;5;6",
        "\ufeffa\ty\tb\n1\t2\t3\n4\t5\t6\n",
        "\ufeff\ufeffa,y,b\n1,2,3\n4,5,6\n",
        '\n"a", y ,b\n\n1e0, 2 ,3.0\n,,\n+4,5,6\n\n',
    ],
    ids=["commas", "semicolons", "tabs-and-byte-order-mark", "two-marks", "spaces-and-empty-lines"],
)
def test_read_table_splits_inputs_from_the_target(write, content):
    X, y, names, target, lines, notes, weights, units, groups = read_table(write(content), "y")
    assert groups is None
    assert (notes, weights, units) == ((), None, {})
    written = content.removeprefix("\ufeff").splitlines()
    assert all(set("123456") & set(written[line - 1]) for line in lines)
    np.testing.assert_array_equal(X, [[1, 3], [4, 6]])
    np.testing.assert_array_equal(y, [2, 5])
    assert (names, target) == (("a", "b"), "y")


BAD_TABLES = {
    "empty file": ("", "is empty"),
    "blank file": ("\n \n", "is empty"),
    "header alone": ("a,y\n", "no rows"),
    "one row": ("a,y\n1,2\n", "1 row of numbers .* at least 2"),
    "no such column": ("a,b\n1,2\n3,4\n", r"no column 'y'; its columns are 'a', 'b'\.$"),
    "target in another case": ("a,Y\n1,2\n3,4\n", r"its columns are 'a', 'Y'\. Did you mean 'Y'\?"),
    "spaces between cells": ("a b\n1 2\n3 4\n", r"no column 'y'; its columns are 'a', 'b'\.$"),
    "bars between cells": ("a|y\n1|2\n3|4\n", r"are 'a\|y'\. Separate the cells by commas, semicolons"),
    "open quote in the first line": ('"a,y\n1,2\n3,4\n', r"are 'a,y'\. Close the quotes in its first line"),
    "open quote of a later name": ('a,"b,y\n1,2,3\n', r"are 'a', 'b,y'\. Close the quotes in its first line"),
    "open quote closed below": ('"a,y\n1,2,"\n3,4\n', r"are 'a,y 1,2,'\. Close the quotes in its first"),
    "target alone": ("y\n1\n2\n", "no column but the target 'y'"),
    "no header": ("1,2\n3,4\n", r"a row of numbers; add a first line that names the columns\.$"),
    "header in a comment": (
        "\n# a,y\n1,2\n3,4\n",
        r"a row of numbers; lines that begin with # are skipped, such as '# a,y'\. If it has the names of "
        r"the columns, take the # away; numpy\.savetxt\(\.\.\., comments=''\)",
    ),
    "same name twice": ("a,a,y\n1,2,3\n4,5,6\n", "2 columns named 'a'"),
    "column without a name": ("a,,y\n1,2,3\n4,5,6\n", r"column 2 no name; .* in the first line\.$"),
    "index with gaps": (",a,y\n0,1,2\n2,3,4\n", r"column 1 no name; .*: to_csv\(.*index=False\) in Python"),
    "text column": ("a,y\n1,2\nred,3\nblue,4\n", "line 3: 'red' for 'a' is not a number; remove the column"),
    "text target": ("a,y\n1,high\n2,low\n", "line 2: 'high' for 'y' is not a number"),
    "two decimal marks": ('a,y\n1.5,2\n"3,5",4\n', "line 3: '3,5' for 'a' is not a number where '.' is the"),
    "thousands of two digits": ('a,y\n1,2\n"1,00,000",4\n', "line 3: '1,00,000' for 'a' is not a number"),
    "columns of text alone": ("a,y\nred,2\nblue,3\n", "line 2: 'red' for 'a' is not a number"),
    "underscore in a number": ("a,y\n1_0,2\n3,4\n", "'1_0' for 'a' is not a number"),
    "Arabic digits": (
        "a,y\n1,2\n٣,4\n",
        "line 3: '٣' for 'a' is not a number; write numbers with the digits 0 to 9",
    ),
    "wide digits": (
        "a,y\n1,2\n3,4.\uff15\n",
        "line 3: '4.\uff15' for 'y' is not a number; write numbers with the digits",
    ),
    "long cell": (f"a,y\n1,2\n{'x' * 999},4\n", r"line 3: 'x{59}…' for 'a' is not a number"),
    "many columns": (f"{','.join(f'x{i}' for i in range(2000))}\n", r"'x0', .*, 'x29', and 1,970 more\.$"),
    "empty cell": ("a,y\n1,2\n,4\n", r"1 row of numbers .* at least 2 \(1 row with .* left out: line 3\)"),
    "nan": ("a,y\n1,2\n3,NaN\n", r"1 row of numbers .* \(1 row with a missing cell is left out: line 3\)"),
    "infinite": ("a,y\n1,2\n-inf,4\n", "line 3: '-inf' for 'a' is not finite"),
    "beyond a float": ("a,y\n1,2\n1e999,4\n", "'1e999' for 'a' is not finite"),
    "long row": ("a,y\n1,2\n3,4,5\n", "line 3: 3 cells for 2 columns"),
    "short row": ("a,y\n1,2\n3\n", "line 3: 1 cell for 2 columns"),
    "open quote": ('a,y\n1,2\n"3,4\n', "1 cell for 2 columns"),
    "open quote in the last column": ('a,y\n1,2\n3,"4\n5,6\n', "is not a CSV file.*check its quotes"),
    "short row behind missing cells": ("a,b,y\n1,2,\n3,4\n", "line 3: 2 cells for 3 columns"),
    "long row behind line breaks": ('a,y\n"\n\n1",2\n\n# c\n3,4,5\n', "line 7: 3 cells for 2 columns"),
    "text behind line breaks": ('"a\nb",y\n"1\n",2\n\n3,"4\n"\n5,z\n', "line 8: 'z' for 'y' is not a number"),
    "not UTF-8": (b"a,y\n1,2\n\x81,4\n", "is not text; save the table as CSV"),
    "null byte": (b"a,y\n1,2\n\x00,4\n", "is not a number"),
}


@pytest.mark.parametrize(("content", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_an_error_that_says_where_and_what_to_do(write, content, message):
    path = write(content)
    with pytest.raises(TableError, match=message) as error:
        read_table(path, "y")
    assert str(error.value).startswith(path)


def test_spaces_of_any_kind_around_a_number_are_passed_over(write):
    X, y, *_ = read_table(write("a,y\n1\u00a0,2\n 3 ,\t4\n"), "y")
    np.testing.assert_array_equal(np.column_stack([X, y]), [[1, 2], [3, 4]])


UNUSUAL_TABLES = {
    "missing cells": ("a,b,y\n1,3,2\n,5,6\n7,8,n/a\n4,6,5\n", ["2 rows .* left out: lines 3, 4"]),
    "columns of text": (
        "a,kind,b,y,place\n1,red,3,2,here\n4,NA,6,5,there\n",
        ["2 columns without a number are left out: 'kind', 'place'"],
    ),
    "empty columns": ("a,,b,y\n1,,3,2\n4,,6,5\n".replace(",,b", ",c,b"), ["1 column .* left out: 'c'"]),
    "decimal commas": ("a;b;y\n1,0;3,0;,2e1\n4;6;5,\n", ["as in 1,0, are read as decimal points"]),
    "comments": ("# measured in May\na,b,y\n# morning\n1,3,2\n#1,1,1\n4,6,5\n", []),
    "another encoding": ("a,b,y,größe\n1,3,2,weiß\n4,6,5,ä\n".encode("cp1252"), ["Windows-1252", "größe"]),
    "line breaks in cells": ('a,b,y,note\n1,3,2,"two\nlines"\n4,6,5,"\n"\n', ["left out: 'note'"]),
    "index of pandas": (",a,b,y\n0,1,3,2\n1,4,6,5\n", ["Column 1 has no name and the numbers of the rows"]),
    "decimal commas between commas": (
        'a,b,y\n"1,0",3,2\n4,"6,0",5\n',
        ["as in 1,0, are read as decimal points"],
    ),
    "wide letters": ("a,b,y\n1,3,2\n4,6,5\n".encode("utf-16"), []),
}


def test_columns_of_truth_values_are_numbers(write):
    content = "a,y,b,c\n1,TRUE,True,yes\n2,FALSE,,true\n3,true,false,no\n4,true,true,no\n"
    table = read_table(write(content), "y")
    assert table.feature_names == ("a", "b")
    np.testing.assert_array_equal(table.X, [[1, 1], [3, 0], [4, 1]])
    np.testing.assert_array_equal(table.y, [1, 1, 1])
    assert table.notes == (
        "1 column without a number is left out: 'c'.",
        "True and false in 'b' are read as 1 and 0.",
        "True and false in 'y' are read as 1 and 0.",
        "1 row with a missing cell is left out: line 3.",
    )
    assert read_table(write(content), "y", ["a"]).notes == ("True and false in 'y' are read as 1 and 0.",)


@pytest.mark.parametrize(("content", "notes"), UNUSUAL_TABLES.values(), ids=UNUSUAL_TABLES)
def test_what_tables_of_people_have_is_read_and_told(write, content, notes):
    table = read_table(write(content), "y")
    np.testing.assert_array_equal(table.X, [[1, 3], [4, 6]])
    np.testing.assert_array_equal(table.y, [2, 5])
    assert table.feature_names == ("a", "b")
    assert len(table.notes) == len(notes)
    for said, expected in zip(table.notes, notes, strict=True):
        assert re.search(expected, said)


def test_separators_in_quoted_names_separate_nothing(write):
    table = read_table(write('"a,b,\n(c)";"d\te";y\n1;3;2\n4;6;5\n'), "y")
    assert table.feature_names == ("a,b, (c)", "d\te")
    np.testing.assert_array_equal(table.X, [[1, 3], [4, 6]])
    # A quote inside a name opens nothing.
    assert read_table(write('height in ",y\n1,2\n3,4\n'), "y").feature_names == ('height in "',)


def test_typographic_spaces_in_names_are_spaces(write):
    table = read_table(write("Head\u00a0(m),flow\u202frate\n1,2\n3,5\n"), "Head (m)")
    assert (table.target, table.feature_names) == ("Head (m)", ("flow rate",))


def test_commas_in_names_between_semicolons_separate_nothing(write):
    table = read_table(write("height, cm;weight, kg;y\n1,5;2;3\n4;5;6\n"), "y")
    assert table.feature_names == ("height, cm", "weight, kg")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [4, 5]])


def test_a_quote_that_is_never_closed_ends_in_an_error(write):
    with pytest.raises(TableError, match="no column 'y'"):
        read_table(write('"a,y\n' + "1,2\n" * 200), "y")


def test_thousands_of_columns_are_read(write):
    names = [f"column {i}" for i in range(3_000)]
    numbers = np.arange(6_000.0).reshape(2, 3_000)
    content = "\n".join([",".join(names), *(",".join(map(str, row)) for row in numbers)])
    table = read_table(write(content), names[-1])
    assert table.feature_names == tuple(names[:-1])
    np.testing.assert_array_equal(table.X, numbers[:, :-1])


def test_the_lines_that_are_named_are_those_of_the_file(write):
    content = '# comment\na,b,y\n"1",2,3\n\n#\n1,,3\n1,2,3\n'
    assert read_table(write(content), "y").notes == ("1 row with a missing cell is left out: line 6.",)
    content = '# comment\n"a\nb",y\n"1\n",2\n\n,3\n"\r\n4\r\n",5\n,6\n'
    assert read_table(write(content), "y").notes == ("2 rows with a missing cell are left out: lines 7, 11.",)


def test_numbers_are_read_to_the_last_digit(write):
    numbers = np.random.default_rng(0).normal(size=(500, 2)) * 10.0 ** np.arange(-250, 250)[:, None]
    content = "a,y\n" + "".join(f"{a!r},{y!r}\n" for a, y in numbers.tolist())
    X, y, *_ = read_table(write(content), "y")
    np.testing.assert_array_equal(np.column_stack([X, y]), numbers)


def test_rows_of_separators_alone_are_passed_over(write):
    np.testing.assert_array_equal(read_table(write("a;y\n1;2\n;;; ;\n;\n3;4\n"), "y").y, [2, 4])


def test_many_rows_with_missing_cells_are_counted(write):
    content = "a,y\n" + "1,\n" * 2000 + "1,2\n3,4\n"
    (note,) = read_table(write(content), "y").notes
    assert note == "2,000 rows with a missing cell are left out: lines 2, 3, 4, 5, 6 and 1,995 more."


def test_the_inputs_and_the_weights_are_columns_of_choice(write):
    path = write("a,n,b,y,c\n1,9,3,2,red\n4,8,6,5,blue\n")
    table = read_table(path, "y", columns=["b", "a"], weights="n")
    np.testing.assert_array_equal(table.X, [[3, 1], [6, 4]])
    np.testing.assert_array_equal(table.weights, [9, 8])
    assert (table.feature_names, table.notes) == (("b", "a"), ())
    assert read_table(path, "y", weights="n").feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,2,1\n3,4,-0.5\n", r"line 3: -0\.5 for 'n' is a negative weight; write weights of at least 0"),
        ("1,2,0\n3,,1\n5,6,0\n", r"has weights 'n' that are all 0; give some row another"),
    ],
)
def test_weights_that_cannot_be_are_refused(write, rows, message):
    with pytest.raises(TableError, match=message):
        read_table(write(f"y,a,n\n{rows}"), "y", weights="n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["a", "z"]}, "no column 'z'; its columns are 'a', 'n', 'y'"),
        ({"columns": ["a", "n", "a"]}, "'a' is given as an input more than once"),
        (
            {"columns": ["a", "n"], "weights": "n"},
            "'n' is an input and the target, the weights or the groups",
        ),
        ({"weights": "z"}, "no column 'z'"),
    ],
)
def test_columns_of_choice_that_cannot_be_had_are_named(write, options, message):
    with pytest.raises(TableError, match=message):
        read_table(write("a,n,y\n1,9,2\n4,8,5\n"), "y", **options)


def test_a_table_may_come_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,y\n1,2\n3,4\n")))
    np.testing.assert_array_equal(read_table("-", "y").y, [2, 4])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(TableError, match="standard input is empty"):
        read_table("-", "y")


def test_a_closed_standard_input_or_output_is_no_traceback(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TableError, match="standard input is closed; send the table to it, or name a file"):
        read_table("-", "y")
    monkeypatch.setattr(sys, "stdout", None)
    output.print_table([{"a": 1}])


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(TableError, match=r"none\.csv does not exist"):
        read_table(tmp_path / "none.csv", "y")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path, "y")


# --- dgsr fit, with a regressor that answers at once ----------------------------------------------


class FakeRegressor:
    """Finds the product of two columns without looking, in two rounds."""

    texts = ("x1", "x1*x2")
    stop_reason_ = "exact fit"
    loss_ = "squared"
    outliers_ = np.zeros(0, dtype=np.int64)
    n_evaluations_ = 2000
    random_state_ = 7
    history_ = ({"seconds": 0.5},)

    def __init__(self, callback=None, **parameters):
        self.callback = callback
        type(self).parameters = parameters

    def fit(self, X, y, sample_weight=None):
        type(self).sample_weight = sample_weight
        if self.parameters["generator"] == "nonsense":
            raise ValueError("generator='nonsense' is neither a folder nor a name; known names: koza-d12.")
        warnings.warn("the data are few", UserWarning, stacklevel=2)
        self.library_ = get_library("koza-const", X.shape[1])
        found = [Expression.from_text(text, self.library_) for text in self.texts]
        expressions = [expression.with_feature_names(X.columns) for expression in found]
        for round_ in (1, 2):
            if self.callback:
                self.callback(SearchProgress(1000 * round_, 0.5, 0.25, expressions[0], share=0.4))
        known = Uncertainty(0.0, np.zeros((0, 0)), np.zeros(0), 0.5)
        self.pareto_front_ = ParetoFront(
            [
                Candidate(e.complexity, loss, e, known)
                for e, loss in zip(expressions, (np.float64(np.inf), np.float64(0.0)))
            ]
        )
        self.expression_ = expressions[1]
        self.sympy_expr_ = expressions[1].sympy
        return self

    def set_params(self, callback):
        return self

    def predict(self, X):
        return self.expression_(X.to_numpy())

    def save(self, path, target):
        self.written.append("fit")

    def report(self, path, X, y, sample_weight, **options):
        type(self).reported, type(self).options = sample_weight, options
        self.written.append("page")


@pytest.fixture
def regressor(monkeypatch):
    class Regressor(FakeRegressor):
        written = []

    module = types.ModuleType("dgsr.estimator.regressor")
    module.DGSRRegressor = Regressor
    monkeypatch.setitem(sys.modules, "dgsr.estimator.regressor", module)
    return Regressor


@pytest.fixture
def data(write):
    return write("width,height,area\n1,2,2\n2,3,6\n3,5,15\n")


def test_fit_prints_the_front_with_the_columns_names_and_marks_the_chosen_formula(regressor, data):
    result = run("fit", data, "--target", "area")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["index", "complexity", "bits", "NMSE", "leave-one-out", "formula"]
    assert lines[1] == ["0", "1", "4.1", "not", "finite", "0.5", "width"]
    assert lines[2] == [">", "1", "3", "7.6", "0", "0.5", "width*height"]
    assert "area = width*height" in result.stdout


def test_fit_says_on_standard_error_what_it_left_out(regressor, write):
    path = write("width,colour,height,area\n1,red,2,2\n2,blue,3,6\n,red,5,15\n3,red,5,15\n")
    result = run("fit", path, "--target", "area", "--json")
    assert "note: 1 column without a number is left out: 'colour'." in result.stderr
    assert "note: 1 row with a missing cell is left out: line 4." in result.stderr
    assert json.loads(result.stdout)["formula"] == "width*height"


UNITS = {
    "behind the names": "time [s],speed (m/s),distance (m)\n",
    "in a row": "t,v,d\ns,m s-1,m\n",
    "in brackets in a row": "t,v,d\n[s],[m s-1],(m)\n",
}


@pytest.mark.parametrize("names", UNITS.values(), ids=UNITS)
def test_units_in_a_table_are_offered_and_taken_when_asked_for(regressor, write, names):
    path = write(names + "1,2,2\n2,3,6\n3,5,15\n")
    time, speed, distance = names.partition("\n")[0].split(",")
    given = ["fit", path, "--target", distance, "--library", "koza-const"]
    offered = run(*given)
    assert f" of '{speed}', 'm' of '{distance}'); --units table has formulas checked" in offered.stderr
    assert "units" not in regressor.parameters
    taken = run(*given, "--units", "table")
    assert f"note: Formulas are consistent with the units 's' of '{time}', 'm" in taken.stderr
    units = regressor.parameters["units"]
    assert (units.columns[time], units.target) == ("s", "m")
    assert units.columns[speed] in ("m/s", "m s^-1")
    run(*given, "--units", "table", "--units", f"{speed}=km/h", "--y-units", "km")
    units = regressor.parameters["units"]
    assert units.columns == {time: "s", speed: "km/h"}
    assert units.target == "km"


def test_units_that_nobody_knows_are_said_and_not_checked(regressor, write):
    path = write("dose (-),level (grumps),y\n1,2,2\n2,3,6\n3,5,15\n")
    told = run("fit", path, "--target", "y", "--units", "table").stderr
    assert "no units that pint knows, so that they are not checked: 'grumps' of 'level (grumps)'." in told
    assert regressor.parameters["units"].columns == {"dose (-)": ""}
    refused = run("fit", write("a (grumps),b,y\n1,2,2\n2,3,6\n"), "--target", "y", "--units", "table")
    assert refused.exit_code == 2
    assert "error: --units table needs a table with units of its inputs" in refused.stderr


def test_long_names_are_short_in_formulas_and_a_legend_has_them_whole(regressor, write):
    path = write("total particulate mass (ug/m3),height,T [K],area\n1,2,1,2\n2,3,1,6\n3,5,2,15\n")
    given = ["fit", path, "--target", "area"]
    result = run(*given)
    assert "best NMSE 0.25: tpm\n" in result.stderr
    table, _, rest = result.stdout.partition("\ntpm = total particulate mass (ug/m3)\n\n")
    assert table.endswith("tpm*height")
    assert rest.startswith("area = tpm*height\n")
    assert json.loads(run(*given, "--json").stdout)["formula"] == "`total particulate mass (ug/m3)`*height"


@pytest.mark.parametrize("target", ["area", "area (m2)"])
def test_no_short_name_is_that_of_the_target(regressor, write, target):
    path = write(f"area [ft2],height,{target}\n1,2,2\n2,3,6\n3,5,15\n")
    result = run("fit", path, "--target", target)
    assert "best NMSE 0.25: area_2\n" in result.stderr
    assert f"\narea_2 = area [ft2]\n\n{target} = area_2*height\n" in result.stdout


def test_a_table_breaks_no_name_and_no_number_on_a_terminal():
    formula = "1.25e-05*tpm + long_name_of_a_column*exp(-`a b`**2)/1250.75"
    screen = io.StringIO()
    Console(file=screen, width=22, highlight=False).print(output._Cell(formula))
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert lines == ["1.25e-05*tpm +", "long_name_of_a_column*", "exp(-`a b`**2)/1250.75"]


def test_the_help_of_fit_is_in_groups_and_its_examples_work_as_they_are_typed(regressor, write, monkeypatch):
    said = run("fit", "--help").stdout
    headings = [line for line in said.splitlines() if line.endswith(":") and not line.startswith("  ")]
    assert headings == ["Arguments:", "Data:", "Formulas:", "Search:", "Output:", "Options:"]
    assert "the others are inputs, but for those of --weights and --groups" in " ".join(said.split())
    examples = [line.split() for line in said.splitlines() if line.startswith("    dgsr fit ")]
    assert len(examples) == 3
    rows = "".join(f"{i * i},{3 - i},{i**3},{i}\n" for i in range(1, 9))
    monkeypatch.chdir(Path(write("a,b,c,y\n" + rows)).parent)
    for example in examples:
        if "--units" in example:
            write("a,b,c (m),y\n" + rows)
        done = run(*example[1:])
        assert done.exit_code == 0, done.stderr


def test_fit_asks_for_the_meaning_of_a_mark_and_takes_the_answer(regressor, write):
    path = write("width;height;area\n400;2;800\n600;3;1.800\n800;2;1.600\n")
    asked = run("fit", path, "--target", "area")
    assert asked.exit_code == 2
    assert "'1.800' for 'area' can be 1.8 or 1800; give --decimal . if" in asked.stderr
    told = run("fit", path, "--target", "area", "--thousands", ".")
    assert told.exit_code == 0
    assert "note: Points in numbers, as in 1.800, are read as marks between thousands." in told.stderr
    assert "marks between" not in run("fit", path, "--target", "area", "--decimal", ".").stderr


def test_predict_and_symmetries_read_as_fit_does(write):
    saved = str(Path(__file__).parents[1] / "data" / "fit_format_1.dgsr")
    table = write("a mass;time\nkg;s\n1.500;0.920\n1,5;0,92\n")
    for command in (["predict", saved, table], ["symmetries", table, "--target", "time"]):
        assert "'0.920' for 'time' is not a number where ',' is the" in run(*command).stderr
        refused = run(*command, "--decimal", ";")
        assert refused.exit_code == 2
        assert "--decimal ';' is no decimal mark" in refused.stderr
    predicted = run("predict", saved, write("a mass;time\n1.500,0;0,92\n"), "--thousands", ".")
    assert float(predicted.stdout) == pytest.approx(1500.0)
    assert predicted.stderr.count("note: ") == 2


def test_fit_reports_progress_and_warnings_on_standard_error_only(regressor, data):
    result = run("fit", data, "--target", "area")
    assert "starting 40%, 1 s left: 1,000 evaluations, 2,000 a second, best NMSE 0.25: width" in result.stderr
    assert "note: the data are few" in result.stderr
    assert "evaluations, 2,000 a second" not in result.stdout
    assert "note" not in result.stdout


@pytest.mark.search
def test_fit_keeps_the_fit_and_writes_a_report(write, tmp_path):
    rows = "".join(f"{a},{b},{a * b}\n" for a, b in [(1, 2), (2, 3), (3, 5), (4, 1), (2.5, 2), (0.5, 3)])
    kept, page = str(tmp_path / "fit.dgsr"), str(tmp_path / "fit.html")
    options = ("--library", "koza", "--generator", "none", "--max-evaluations", "3000", "--random-state", "0")
    table = write("wing width,height,area\n" + rows)
    result = run("fit", table, "--target", "area", *options, "--save", kept, "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "note: " not in result.stderr
    model = dgsr.load(kept)
    rows = pd.DataFrame({"wing width": [7.0], "height": [3.0]})
    np.testing.assert_allclose(model.predict(rows), [21.0])
    text = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "wing width" in text
    assert "area" in text


def test_a_report_has_the_command_the_split_and_what_was_left_out(regressor, write, tmp_path, monkeypatch):
    table = write("name,width,height,area\na,1,2,2\nb,2,3,6\nc,3,5,15\nd,,1,1\ne,4,2,8\n")
    options = [table, "--target", "area", "--report", str(tmp_path / "fit.html")]
    monkeypatch.setattr(sys, "argv", ["dgsr", "fit", *options])
    monkeypatch.setattr(regressor, "predict", lambda self, X: X["width"].to_numpy(), raising=False)
    monkeypatch.setattr(regressor, "outliers_", np.array([1]))
    assert run("fit", *options).exit_code == 0
    assert regressor.options["command"] == shlex.join(["dgsr", "fit", *options, "--random-state=7"])
    assert regressor.options["test"] is None
    assert "1 row with a missing cell is left out: line 5." in regressor.options["notes"]
    assert "1 column without a number is left out: 'name'." in regressor.options["notes"]
    assert "Outliers in the table: line 3." in regressor.options["notes"]
    assert run("fit", *options, "--test-size", "0.5").exit_code == 0
    assert regressor.options["notes"][-1] == "2 of 4 rows are held out of the fit, drawn by the seed 0."
    assert len(regressor.options["test"][1]) == 2
    assert regressor.parameters["random_state"] == 0
    assert "--random-state" not in regressor.options["command"]


@pytest.mark.search
def test_fit_goes_on_from_a_checkpoint(write, tmp_path):
    rng = np.random.default_rng(0)
    table = write("x,y\n" + "".join(f"{a},{b}\n" for a, b in rng.uniform(1.0, 2.0, (30, 2))))
    options = ("--library", "koza", "--generator", "none", "--random-state", "0", "--quiet", "--json")
    kept = ("--checkpoint", str(tmp_path / "fit.checkpoint"))

    def fitted(budget, *others):
        result = run("fit", table, "--target", "y", *options, "--max-evaluations", str(budget), *others)
        assert result.exit_code == 0, result.stderr
        return {**json.loads(result.stdout), "seconds": None}

    fitted(1000, *kept)
    # The first stage of exact search counts as half of the first budget.
    assert fitted(3000, *kept)["n_evaluations"] == 3000 - 500
    other = run("fit", table, "--target", "x", *options, *kept)
    assert other.exit_code == 2
    assert "is of a fit with another table; set what it was, delete the file" in other.stderr


def test_fit_passes_columns_and_weights_on(regressor, write, tmp_path):
    path = write("n,width,height,depth,area\n7,1,2,5,2\n8,2,3,5,6\n9,3,5,5,15\n")
    columns = ["--columns", "height", "--columns", "depth", "--weights", "n"]
    options = ["--selection", "bic", "--max-rows", "50", "--report", str(tmp_path / "fit.html")]
    result = run("fit", path, "--target", "area", *options, *columns)
    assert "area = height*depth" in result.stdout
    np.testing.assert_array_equal(regressor.sample_weight, [7, 8, 9])
    np.testing.assert_array_equal(regressor.reported, [7, 8, 9])
    given = regressor.parameters
    assert (given["selection"], given["config"]) == ("bic", {"max_rows": 50})


def test_a_saved_fit_is_shown_and_predicts_for_other_tables(areas, write, tmp_path):
    saved = str(tmp_path / "fit.dgsr")
    options = ["--generator", "none", "--random-state", "0", "--max-evaluations", "3000", "--save", saved]
    fitted = run("fit", areas, "--target", "area", "--json", *options)
    shown = run("show", saved, "--json")
    assert json.loads(shown.stdout) == json.loads(fitted.stdout)
    assert "\narea = lambda*x1\n" in run("show", saved).stdout
    model = dgsr.load(saved)
    table = write("more,x 1,lambda\n1,3,2\n1,,4\n1,0.5,7\n", "others.csv")
    predicted = run("predict", saved, table)
    assert predicted.exit_code == 0
    assert "1 of 3 rows have a missing cell" in predicted.stderr
    values = np.array(predicted.stdout.split(), dtype=float)
    rows = pd.DataFrame({"lambda": [2.0, 7.0], "x 1": [3.0, 0.5]})
    expected = model.predict(rows)
    np.testing.assert_array_equal(values, [expected[0], np.nan, expected[1]])
    for index in (0, "accuracy"):
        first = run("predict", saved, table, "--index", str(index)).stdout.split()[0]
        assert float(first) == model.predict(rows, index=index)[0]


def test_predictions_are_appended_to_the_table_whose_other_cells_stay_as_they_are(write, tmp_path):
    saved = str(Path(__file__).parents[1] / "data" / "fit_format_1.dgsr")
    table = '# May\nname;"a\nmass";time\n;kg;s\n"x;""y""";1,5; 0,92\n\nµ;;1\nz;3,0;0,92\n'
    out = tmp_path / "out.csv"
    done = run("predict", saved, write(table), "--out", str(out))
    assert (done.exit_code, done.stdout) == (0, "")
    written = out.read_text(encoding="utf-8").splitlines()
    assert written[:2] == ["# May", 'name;"a']
    assert written[2:5] == ['mass";time;predicted y', ";kg;s;", '"x;""y""";1,5; 0,92;1,5']
    assert written[5:] == ["", "µ;;1;", "z;3,0;0,92;3,0"]
    again = run("predict", saved, str(out), "--out", str(tmp_path / "again.csv"))
    assert again.exit_code == 0, again.stderr
    assert "time;predicted y;predicted y_2\n" in (tmp_path / "again.csv").read_text(encoding="utf-8")
    for path, file in ((out, f"the table {out}"), (saved, f"the fit {saved}")):
        refused = run("predict", saved, str(out), "--out", str(path))
        assert refused.exit_code == 2
        assert f"would overwrite {file}, the same file; give --out another" in refused.stderr


def test_every_row_has_a_value_and_rows_of_empty_cells_have_nan(write):
    saved = str(Path(__file__).parents[1] / "data" / "fit_format_1.dgsr")
    table = write("a mass,time\n1.5,0.92\n,\n# no row\n\n1.5,0.92\n , \n")
    predicted = run("predict", saved, table)
    assert predicted.stdout.split()[1::2] == ["nan", "nan"]
    assert len(predicted.stdout.split()) == 4


def test_a_row_without_a_value_has_an_empty_cell_between_spaces_too(write, tmp_path):
    saved = str(Path(__file__).parents[1] / "data" / "fit_format_1.dgsr")
    out = str(tmp_path / "out.csv")
    assert run("predict", saved, write('"a mass" time\n1.5 0.92\nNA 1\n'), "--out", out).exit_code == 0
    assert run("predict", saved, out).stdout.split()[1:] == ["nan"]


def test_a_file_that_cannot_hold_the_fit_keeps_no_report_from_being_written(areas, tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "_MAX_HEADER", 10)
    report = tmp_path / "fit.html"
    quick = ["--generator", "none", "--max-evaluations", "300", "--save", str(tmp_path / "fit.dgsr")]
    done = run("fit", areas, "--target", "area", *quick, "--report", str(report))
    assert done.exit_code == 1
    assert "thin out its history" in done.stderr
    assert report.exists()


def test_a_fit_of_an_earlier_version_is_shown_and_predicts(write):
    saved = str(Path(__file__).parents[1] / "data" / "fit_format_1.dgsr")
    assert "am = a mass\n\ny = am/exp(time - 0.92)\n" in run("show", saved).stdout
    assert json.loads(run("show", saved, "--json").stdout)["target"] == "y"
    predicted = run("predict", saved, write("a mass,time\n1.5,0.92\n"))
    assert (predicted.stderr, float(predicted.stdout)) == ("", pytest.approx(1.5))


@pytest.mark.search
def test_a_fit_that_python_saved_is_shown_and_predicts(write, tmp_path):
    X = np.random.default_rng(0).uniform(1, 5, (20, 2))
    model = dgsr.DGSRRegressor("koza", None, max_evaluations=2_000, random_state=0)
    saved = tmp_path / "fit.dgsr"
    model.fit(X, X[:, 0] * X[:, 1]).save(saved, target="force")
    assert "\nforce = x1*x2\n" in run("show", str(saved)).stdout
    predicted = run("predict", str(saved), write("x2,x1\n3,4\n"))
    assert (predicted.stderr, float(predicted.stdout)) == ("", 12.0)


@pytest.mark.search
@pytest.mark.parametrize("is_apart", [False, True])
def test_labels_that_are_numbers_in_python_are_those_of_a_table(write, tmp_path, is_apart):
    x, labels = np.tile(np.linspace(0.0, 2.0, 8), 3), np.repeat([1.0, 2.0, 10.0], 8)
    X = pd.DataFrame({"group": labels, "x": x})
    model = dgsr.DGSRRegressor(
        "auto", None, form="k*exp(-r*x)", random_state=0, groups=None if is_apart else "group"
    )
    model.fit(X[["x"]] if is_apart else X, labels * np.exp(-x), groups=labels if is_apart else None)
    model.save(tmp_path / "fit.dgsr")
    predicted = run("predict", str(tmp_path / "fit.dgsr"), write("group,x\n10,0\n2.0,0\n1,0\n"))
    assert predicted.stderr == ""
    assert [*map(float, predicted.stdout.split())] == pytest.approx([10.0, 2.0, 1.0])


@pytest.mark.search
def test_a_row_without_a_group_has_no_value_and_one_of_a_new_group_a_note(write, tmp_path):
    X = pd.DataFrame({"x": np.tile(np.linspace(0.0, 2.0, 8), 2), "group": np.repeat(["a", "b"], 8)})
    model = dgsr.DGSRRegressor("auto", None, form="k*exp(-r*x)", random_state=0, groups="group")
    model.fit(X, np.repeat([1.0, 3.0], 8) * np.exp(-X["x"])).save(tmp_path / "fit.dgsr")
    predicted = run("predict", str(tmp_path / "fit.dgsr"), write("group,x\na,0\n,0\nNA,0\nc,0\n"))
    values = [1.0, np.nan, np.nan, 2.0]
    np.testing.assert_allclose([*map(float, predicted.stdout.split())], values)
    notes = predicted.stderr.splitlines()
    assert notes[0].startswith("note: 1 rows are of groups that were not in the fit, 'c': they are predicted")
    assert notes[1:] == ["note: 2 of 4 rows have a missing cell and no value."]


@pytest.fixture(scope="module")
def saved_areas(tmp_path_factory):
    """A file of a fit of the table of `areas`."""
    folder = tmp_path_factory.mktemp("saved")
    saved, table = folder / "fit.dgsr", folder / "areas.csv"
    table.write_text(text_of_areas(), encoding="utf-8")
    options = ["--generator", "none", "--random-state", "0", "--max-evaluations", "500", "--save", str(saved)]
    assert run("fit", str(table), "--target", "area", *options).exit_code == 0
    return str(saved)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "FIT", "none.csv"], "none.csv does not exist"),
        (["predict", "FIT", "TABLE"], "no column 'lambda'; its columns are 'height', 'length'"),
        (["predict", "FIT", "AREAS", "--index", "best"], "--index 'best' is no candidate; give a number"),
        (["predict", "FIT", "AREAS", "--index", "99"], "--index '99' is no candidate; give a number from 0"),
        (["predict", "FIT", "AREAS", "--index", "²"], "--index '²' is no candidate; give a number from 0 to"),
        (["show", "TABLE"], "others.csv"),
        (["show", "none.dgsr"], "none.dgsr does not exist; name a file that dgsr fit --save wrote."),
        (["predict", "none.dgsr", "AREAS"], "none.dgsr does not exist; name a file that dgsr fit"),
        (["show", "."], ". is a folder; name a file that dgsr fit --save wrote."),
    ],
)
def test_what_no_saved_fit_can_do_is_one_line_of_error(areas, saved_areas, write, arguments, message):
    names = {"FIT": saved_areas, "AREAS": areas, "TABLE": write("height,length\n1,2\n3,4\n", "others.csv")}
    result = run(*(names.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_a_report_is_written_under_a_phase_of_its_own(regressor, data, tmp_path, monkeypatch):
    begun, page = [], tmp_path / "page.html"
    monkeypatch.setattr(output, "begin_phase", begun.append)
    run("fit", data, "--target", "area", "--report", str(page))
    assert begun == ["starting", f"writing {page}"]
    run("fit", data, "--target", "area", "--report", str(page), "--quiet")
    assert len(begun) == 2


def test_quiet_fit_shows_no_progress(regressor, data):
    assert "evaluations" not in run("fit", data, "--target", "area", "--quiet").stderr


def test_json_is_the_whole_of_standard_output(regressor, data):
    result = json.loads(run("fit", data, "--target", "area", "--json").stdout)
    assert result["formula"] == "width*height"
    assert result["version"] == dgsr.__version__
    same = {"leave_one_out": 0.5, "constants": [], "standard_errors": []}
    width = {"complexity": 1, "description_length": 4.12, "nmse": None, "formula": "width", "chosen": False}
    area = {"complexity": 3, "description_length": 7.58, "nmse": 0.0, "formula": "width*height"}
    assert result["pareto_front"] == [{**width, **same}, {**area, "chosen": True, **same}]


def test_fitted_constants_are_short_in_the_table_and_whole_elsewhere(regressor, data, monkeypatch):
    monkeypatch.setattr(regressor, "texts", ("0.123456789*x1", "0.123456789*x1*x2"))
    table = run("fit", data, "--target", "area").stdout
    assert "0.12346*width*height" in table
    assert "area = 0.123456789*width*height" in table
    result = json.loads(run("fit", data, "--target", "area", "--json").stdout)
    assert [row["formula"] for row in result["pareto_front"]] == [
        "0.123456789*width",
        "0.123456789*width*height",
    ]


def test_fit_passes_its_options_on(regressor, data):
    options = [
        "--library",
        "koza",
        "--generator",
        "g",
        "--max-evaluations",
        "9e3",
        "--max-time",
        "1.5",
        "--loss",
        "huber",
        "--initial-formula",
        "a*x1",
        "--initial-formula",
        "b + x1",
        "--form",
        "f(x1)",
        "--n-jobs",
        "2",
        "--checkpoint",
        "kept",
    ]
    run("fit", data, "--target", "area", "--random-state", "7", *options)
    assert regressor.parameters == {
        "library": "koza",
        "generator": "g",
        "max_evaluations": 9000,
        "max_time": 1.5,
        "loss": "huber",
        "selection": "mdl",
        "initial_formulas": ["a*x1", "b + x1"],
        "form": "f(x1)",
        "n_jobs": 2,
        "random_state": 7,
        "checkpoint": Path("kept"),
    }


def test_a_form_has_its_parts_printed(data):
    options = ["--form", "f(width)*g(height) + k", "--max-evaluations", "500", "--random-state", "0"]
    text = run("fit", data, "--target", "area", *options).stdout
    result = json.loads(run("fit", data, "--target", "area", *options, "--json").stdout)
    (chosen,) = (row for row in result["pareto_front"] if row["chosen"])
    assert list(chosen["parts"]) == ["f(width)", "g(height)", "k"]
    assert all(f"\n{name} = {part}\n" in text for name, part in chosen["parts"].items())


def test_no_short_name_is_that_of_a_part_of_a_form(write):
    path = write("k (m),b,y\n1,2,5\n2,3,9\n3,5,18\n4,1,7\n")
    options = ["--form", "f(b)*`k (m)` + k", "--max-evaluations", "500", "--random-state", "0"]
    text = run("fit", path, "--target", "y", *options).stdout
    assert "\nk_2 = k (m)\n" in text
    assert "\ny = b*k_2 + 3\n" in text
    assert "\nk = 3\n" in text


def test_rules_and_formulas_go_by_the_names_of_the_columns(regressor, data):
    options = ["--complexity", "sin=9", "--complexity", "height=2", "--nested", "sin/sin=any"]
    options += ["--nested", "exp/log=0", "--nested", "exp/sin=1", "--initial-formula", "a*width/height^2"]
    options += ["--loss", "log(prediction/target)**2"]
    run("fit", data, "--target", "area", *options)
    given = regressor.parameters
    assert dict(given["library"].complexities) == {"sin": 9, "height": 2}
    assert given["constraints"] == {"nested": {"sin": {"sin": None}, "exp": {"log": 0, "sin": 1}}}
    assert given["initial_formulas"] == ["a*width/height^2"]
    assert given["loss"] == "log(prediction/target)**2"


def test_spaces_around_the_signs_of_a_rule_mean_nothing(regressor, data):
    options = [
        "--complexity",
        "height = 2",
        "--nested",
        "sin / sin = 1",
        "--at",
        "width=0, height = 0, value=0",
    ]
    run("fit", data, "--target", "area", *options, "--units", "width = m", "--monotone", "width = increasing")
    given = regressor.parameters
    assert dict(given["library"].complexities) == {"height": 2}
    assert given["units"].columns == {"width": "m"}
    assert given["constraints"] == {
        "nested": {"sin": {"sin": 1}},
        "monotone": {"width": "increasing"},
        "at": [{"width": 0.0, "height": 0.0, "value": 0.0}],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--complexity", "sin"], "'sin' must be NAME=NUMBER"),
        (["--nested", "sin=1"], "'sin=1' must be OUTER/INNER=NUMBER"),
        (["--units", "width"], "--units 'width' must be COLUMN=UNIT"),
        (["--unit-penalty", "2"], "--unit-penalty means nothing without units of columns; give --units, too"),
        (
            ["--unitless-constants"],
            "--unitless-constants means nothing without units of columns; give --units, too",
        ),
        (["--y-units", "m^2"], "--y-units means nothing without units of columns; give --units, too"),
        (
            ["--units", "width=m", "--units", "area=m^2"],
            "is for the target; give its unit by --y-units 'm.2'",
        ),
        (["--units", "width=m", "--units", "width=cm"], "--units is given twice for 'width'"),
        (["--complexity", "sin=9", "--complexity", "sin=3"], "--complexity is given twice for 'sin'"),
        (["--nested", "exp/sin=1", "--nested", "exp/sin=2"], "--nested exp/... is given twice for 'sin'"),
        (["--columns", "width", "--columns", "width"], "'width' is given as an input more than once"),
        (["--test-size", "1.5"], "--test-size 1.5 must be between 0 and 1"),
        (["--test-size", "0.3"], "holds out 1 of 3 rows, .* at least 2 each"),
    ],
)
def test_rules_that_cannot_be_read_are_one_line_of_error(regressor, data, options, message):
    result = run("fit", data, "--target", "area", *options)
    assert result.exit_code == 2
    assert re.search(message, result.stderr)
    assert result.stderr.count("\n") == 1


def test_rows_are_held_out_by_the_seed_and_the_formula_is_tested_on_them(areas):
    options = ["--target", "area", "--max-evaluations", "2000", "--generator", "none", "--quiet"]
    test = json.loads(run("fit", areas, *options, "--test-size", "0.25", "--json").stdout)["test"]
    assert test["seed"] == 0
    assert test["r2"] == pytest.approx(1.0)
    assert test["nmse"] == pytest.approx(0.0, abs=1e-12)
    table = read_table(areas, "area")
    kept, held_out = split(table, 0.25, 7)
    assert len(held_out.y) == round(0.25 * len(table.y))
    rows = np.concatenate([kept.X, held_out.X])
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], table.X[np.lexsort(table.X.T)])
    np.testing.assert_array_equal(split(table, 0.25, 7)[1].X, held_out.X)
    assert not np.array_equal(split(table, 0.25, 8)[1].X, held_out.X)
    said = run("fit", areas, *options, "--test-size", "0.25", "--random-state", "7").stdout
    n = test["n_rows"]
    assert f"on {n} rows held out before the fit, drawn by the seed 7: R2 1, NMSE " in said


def test_a_score_on_rows_held_out_is_weighted_and_may_have_no_value():
    y, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    rows = Table(np.zeros((3, 1)), y, ("x",), "y", np.arange(2, 5), weights=weights)
    mean = np.average(rows.y, weights=rows.weights)
    assert score_of(np.full(3, mean), rows)["r2"] == pytest.approx(0.0)
    unknown = {"n_rows": 3, "r2": None, "nmse": None}
    assert score_of(np.array([1.0, np.nan, 1.0]), rows) == unknown
    assert score_of(np.ones(3), rows._replace(y=np.ones(3))) == unknown


def test_rows_without_weight_cannot_be_held_out_alone():
    weights = np.zeros(8)
    weights[np.random.default_rng(0).permutation(8)[2:]] = 1.0
    table = Table(np.zeros((8, 1)), np.arange(8.0), ("x",), "y", np.arange(2, 10), weights=weights)
    with pytest.raises(ValueError, match=r"holds out 2 rows whose weights are all 0; choose another"):
        split(table, 0.25, 0)


def test_a_shell_completes_commands_and_options():
    for words, completed in {"dgsr pre": {"predict", "pretrain"}, "dgsr fit --tes": {"--test-size"}}.items():
        n = str(len(words.split()) - 1)
        asked = {"_DGSR_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": n}
        found = subprocess.run(DGSR, env=os.environ | asked, capture_output=True, text=True, check=False)
        assert set(found.stdout.split()) == completed


def test_generator_none_is_a_search_without_a_network(regressor, data):
    run("fit", data, "--target", "area", "--generator", "none")
    assert regressor.parameters["generator"] is None


def test_an_interrupted_fit_prints_what_it_has_and_says_so_in_its_exit_code(regressor, data, monkeypatch):
    monkeypatch.setattr(regressor, "stop_reason_", "interrupted")
    result = run("fit", data, "--target", "area")
    assert result.exit_code == 130
    assert "area = width*height" in result.stdout


@pytest.mark.parametrize("option", ["--save", "--report", "--checkpoint"])
@pytest.mark.parametrize("place", ["none/file", "."])
def test_a_file_that_cannot_be_written_is_told_before_the_search(regressor, data, tmp_path, option, place):
    result = run("fit", data, "--target", "area", option, str(tmp_path / place))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {tmp_path / place} cannot be written (")
    assert result.stderr.count("\n") == 1
    assert not hasattr(regressor, "parameters")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--save", "data.csv"], "--save data.csv would overwrite the table data.csv"),
        (["--report", "a/../data.csv"], "--report a/../data.csv would overwrite the table data.csv"),
        (["--checkpoint", "link.csv"], "--checkpoint link.csv would overwrite the table data.csv"),
        (["--save", "fit", "--report", "fit"], "--report fit would overwrite --save fit"),
        (["--save", "fit", "--checkpoint", "./fit"], "--checkpoint fit would overwrite --save fit"),
        (["--report", "link", "--checkpoint", "fit"], "--checkpoint fit would overwrite --report link"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has no links that anyone may make")
def test_no_file_is_written_over_the_table_or_another_result(
    regressor, data, tmp_path, monkeypatch, options, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "link.csv").symlink_to("data.csv")
    (tmp_path / "link").symlink_to("fit")
    before = Path(data).read_bytes()
    result = run("fit", "data.csv", "--target", "area", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {said}, the same file; give {said.split()[0]} another.\n"
    assert Path(data).read_bytes() == before
    assert not (tmp_path / "fit").exists()
    assert not hasattr(regressor, "parameters")


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is no device that takes everything")
def test_a_device_takes_several_results(regressor, data):
    result = run("fit", data, "--target", "area", "--save", "/dev/null", "--report", "/dev/null")
    assert result.exit_code == 0
    assert regressor.written == ["fit", "page"]


def test_a_result_is_printed_before_it_is_written_and_one_failure_keeps_nothing_back(
    regressor, data, tmp_path, monkeypatch
):
    def fail(self, path, target):
        raise OSError(f"{path} cannot be written")

    monkeypatch.setattr(regressor, "save", fail)
    kept, page = str(tmp_path / "fit.dgsr"), str(tmp_path / "fit.html")
    result = run("fit", data, "--target", "area", "--quiet", "--save", kept, "--report", page)
    assert "area = width*height" in result.stdout
    assert result.stderr == f"note: the data are few\nerror: {kept} cannot be written\n"
    assert regressor.written == ["page"]
    assert result.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_standard_output_is_one_line_of_error_and_the_files_are_written(
    regressor, data, tmp_path, monkeypatch, capsys, options
):
    command = ["dgsr", "fit", data, "--target", "area", "--quiet", "--save", str(tmp_path / "fit.dgsr")]
    monkeypatch.setattr("sys.argv", [*command, *options])
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 1
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("error: Standard output cannot be written (No space left on device); send it")
    assert regressor.written == ["fit"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_a_full_standard_output_of_another_command_is_one_line_of_error_too():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*DGSR, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: Standard output cannot be written (")
    assert done.stderr.count("\n") == 1


def test_a_table_is_printed_through_the_one_door_that_tells_of_a_full_standard_output(monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(OSError, match="Standard output cannot be written"):
        output.print_table([{"name": "koza", "found": 1}])


def test_letters_that_standard_output_lacks_are_escaped(regressor, write, monkeypatch):
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding="cp1252", write_through=True))
    data = write("λ,height,area\n1,2,2\n2,3,6\n3,5,15\n")
    monkeypatch.setattr("sys.argv", ["dgsr", "fit", data, "--target", "area", "--quiet"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert b"area = \\u03bb*height\n" in output.getvalue()


ORDERS = "\x1b]0:owned\x07\x9b31m\u202e\x08\nz"


def test_what_a_stranger_wrote_gives_a_terminal_no_orders(regressor, write):
    data = write(f'"a{ORDERS}",height,"area{ORDERS}"\n1,2,2\n2,3,6\n3,5,15\n')
    target = f"area{ORDERS}"
    result = run("fit", data, "--target", target)
    assert result.exit_code == 0
    escaped = r"\x1b]0:owned\x07\x9b31m\u202e\x08 z"  # names are in one line
    assert f"area{escaped} = " in result.stdout
    assert "best NMSE 0.25: a0o3z\n" in result.stderr
    assert f"\na0o3z = a{escaped}\n" in result.stdout
    assert all(c == "\n" or c.isprintable() for c in result.output)
    found = json.loads(run("fit", data, "--target", target, "--json").stdout)
    assert found["target"] == target.replace("\n", " ")
    assert found["formula"] == f"`a{escaped}`*height"


@pytest.mark.parametrize(
    "table", [f'"a{ORDERS}",b\n1,2\n3,4\n', f'a,y\n"{ORDERS}x",2\n3,4\n', f'"{ORDERS}x","{ORDERS}x"\n1,2\n']
)
def test_an_error_on_what_a_stranger_wrote_is_one_printable_line(write, table):
    result = run("fit", write(table, "da\x1b[2Jta.csv"), "--target", "y")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr[:-1].isprintable()
    assert r"da\x1b[2Jta.csv" in result.stderr


def test_the_closing_line_counts_the_search_alone(regressor, data, monkeypatch):
    monkeypatch.setattr(regressor, "history_", ({"seconds": 0.1}, {"seconds": 4.0}))
    result = run("fit", data, "--target", "area")
    assert "2,000 evaluations in 4.0 s of search (500 a second)" in result.stdout


def test_the_seed_is_told_also_when_it_was_drawn(regressor, data):
    assert "a second), random state 7; stopped: " in run("fit", data, "--target", "area").stdout
    assert json.loads(run("fit", data, "--target", "area", "--json").stdout)["random_state"] == 7


def test_what_the_regressor_refuses_is_one_line_of_error(regressor, data):
    result = run("fit", data, "--target", "area", "--generator", "nonsense")
    assert (result.exit_code, result.stdout) == (2, "")
    message = "generator='nonsense' is neither a folder nor a name; known names: koza-d12."
    assert result.stderr == f"error: {message}\n"


def test_an_unknown_library_is_one_line_of_error(data):
    result = run("fit", data, "--target", "area", "--library", "nonsense")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: library='nonsense' is unknown; choose from koza, ")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send to one process")
def test_sigterm_before_there_is_a_result_is_told_and_the_old_handler_comes_back(
    regressor, data, monkeypatch
):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(regressor, "fit", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    result = run("fit", data, "--target", "area")
    assert (result.exit_code, result.stdout) == (143, "")
    assert result.stderr == "interrupted before there was a result\n"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("option", ["--max-evaluations=0", "--max-time=-1", "--random-state=x", "--nonsense"])
def test_a_wrong_option_is_refused(data, option):
    result = run("fit", data, "--target", "area", option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert option.partition("=")[0] in result.stderr


@pytest.mark.parametrize("number", ["1.5", "-1e5", "inf", "nan", "many"])
def test_what_is_no_whole_number_of_evaluations_is_refused(data, number):
    result = run("fit", data, "--target", "area", f"--max-evaluations={number}")
    assert result.exit_code == 2
    assert f"'{number}' is no whole number above 0" in " ".join(result.stderr.split())


# --- dgsr fit, in earnest -------------------------------------------------------------------------


SMALL = ["--max-evaluations", "2000", "--random-state", "0", "--generator", "none"]


def text_of_areas():
    """Width, height and area of some rectangles; one column's name is a word of Python."""
    sides = np.random.default_rng(0).uniform(1, 5, (20, 2))
    rows = [f"{w!r},{h!r},{w * h!r}" for w, h in sides.tolist()]
    return "\n".join(["lambda,x 1,area", *rows]) + "\n"


@pytest.fixture
def areas(write):
    return write(text_of_areas())


def test_the_target_is_no_weight(areas):
    with pytest.raises(TableError, match="'area' is the target and the weights; choose one"):
        read_table(areas, "area", weights="area")


@pytest.mark.search
def test_the_formula_of_a_fit_is_in_the_names_of_the_columns(areas):
    result = run("fit", areas, "--target", "area", *SMALL, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    *front, legend, empty, formula, summary = result.stdout.splitlines()
    assert front[0].split() == ["index", "complexity", "bits", "NMSE", "leave-one-out", "formula"]
    assert [row.lstrip("> ").split()[0] for row in front[1:]] == [str(i) for i in range(len(front) - 1)]
    assert front[-1].startswith(">")
    assert front[-1].endswith(("lambda*x1", "x1*lambda"))
    assert not any(line.endswith(" ") for line in front)
    assert (legend, empty) == ("x1 = x 1", "")
    assert formula == "area = lambda*x1"
    assert summary.endswith("stopped: exact fit")


@pytest.mark.search
def test_the_same_seed_prints_the_same_json(areas):
    command = ["fit", areas, "--target", "x 1", *SMALL, "--library", "synth", "--json", "--quiet"]
    first, second = (json.loads(run(*command).stdout) for _ in range(2))
    assert first["target"] == "x 1"
    assert first["formula"] == "area/lambda"
    assert sum(row["chosen"] for row in first["pareto_front"]) == 1
    assert first["n_evaluations"] <= 2000
    assert {**first, "seconds": None} == {**second, "seconds": None}


@pytest.mark.search
def test_a_formula_of_columns_whose_names_are_no_words_is_read_back(write):
    rows = np.random.default_rng(0).uniform(1, 5, (20, 2))
    lines = [f"{a!r},{c!r},{2 * np.pi * a / c!r}" for a, c in rows.tolist()]
    table = write("\n".join(["a-b,c,y", *lines]) + "\n")
    found = json.loads(run("fit", table, "--target", "y", *SMALL, "--quiet", "--json").stdout)
    assert found["formula"] == "2*pi*`a-b`/c"
    read = Expression.from_text(found["formula"], get_library("physics", 2), ["a-b", "c"])
    np.testing.assert_allclose(read(rows), 2 * np.pi * rows[:, 0] / rows[:, 1])


def test_a_constant_target_is_noted_once(write):
    result = run("fit", write("a,b,y\n1,2,3.5\n2,3,3.5\n"), "--target", "y")
    assert result.exit_code == 0
    assert result.stderr == "note: y is 3.5 in every row; the formula is that number.\n"
    assert "y = 3.5" in result.stdout


@pytest.mark.search
def test_a_fit_worse_than_the_mean_is_noted_with_a_mend(write):
    data = write("a,y\n1,1000\n2,1001\n3,1000\n4,1001.5\n")
    note = run(
        "fit", data, "--target", "y", *SMALL, "--library", "koza", "--max-evaluations", "20", "--quiet"
    ).stderr
    assert note.startswith("note: no formula found fits better than the mean of the target; try --library")
    assert note.endswith("or raise --max-evaluations\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--library", "kozo"], "library='kozo' is unknown; choose from koza"),
        (["--generator", "nope"], "generator='nope' is neither a folder nor a name"),
        (["--max-time", "0"], "--max-time must be a float in the range (0.0, 1000000000.0]"),
        (["--lower", "nan"], "--lower must be a float in the range (-inf, inf)"),
        (["--complexity", "lambdas=2"], "complexity['lambdas'] is neither a column nor an operator"),
        (["--complexity", "sin=two"], "complexity='two' of 'sin' must be a whole number from 1 to 100"),
        (["--nested", "sin/sin=10"], "nested['sin']['sin']=10 must be a whole number from 0 to 9 or None"),
        (["--initial-formula", "`x 1`*lamda"], "initial_formulas[0]: 'lamda' is no column. Did you"),
        (["--initial-formula", "a*x1"], "initial_formulas[0]: it has no column; the columns are lambda, `x"),
        (["--form", "f(lambda) +"], "form='f(lambda) +': Cannot read the formula 'f(lambda) +': position 11"),
        (["--units", "lambda=foo"], "units['lambda']='foo' is no unit"),
        (["--units", "lamda=m"], "units names 'lamda', which is no column; did you mean 'lambda'?"),
    ],
)
def test_a_value_the_estimator_refuses_is_one_line_of_error(areas, options, message):
    result = run("fit", areas, "--target", "area", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


# --- dgsr symmetries ------------------------------------------------------------------------------


@pytest.mark.search
def test_symmetries_of_a_table_are_said(tmp_path):
    random = np.random.default_rng(0).uniform(1.0, 3.0, (60, 3))
    force = random[:, 0] * np.exp(random[:, 1] - random[:, 2])
    path = tmp_path / "table.csv"
    table = np.column_stack([random, force])
    np.savetxt(path, table, delimiter=",", header="mass,start,end,force", comments="")
    done = CliRunner().invoke(app, ["symmetries", str(path), "--target", "force"])
    assert done.exit_code == 0
    assert done.stdout == "force/mass depends on start - end alone\n"
    done = CliRunner().invoke(
        app, ["symmetries", str(path), "--target", "force", "--columns", "mass", "--json"]
    )
    assert json.loads(done.stdout) == []
    assert done.stderr.startswith("note: The table was not looked at: it needs 2 to 12 columns")
    done = CliRunner().invoke(app, ["symmetries", str(path), "--target", "force", "--columns", "mass"])
    assert done.stdout.startswith("The table was not looked at: it needs 2 to 12 columns")
    done = CliRunner().invoke(app, ["symmetries", str(path), "--target", "power"])
    assert done.exit_code == 2
    assert "power" in done.stderr


# --- dgsr models, bench and pretrain --------------------------------------------------------------


def test_models_lists_the_generators_with_their_figures(monkeypatch, tmp_path):
    card = {
        "library": {"name": "koza", "n_variables": 2},
        "n_parameters": 280_000,
        "seconds": 1020.0,
        "validation": {"log_likelihood_right": -10.5, "log_likelihood_wrong": -19.25, "hit_100": 0.44},
    }
    listed = [checkpoints.GeneratorInfo("koza-2", tmp_path, card)]
    monkeypatch.setattr(checkpoints, "list_generators", lambda: listed)
    header, row, *_ = run("models").stdout.splitlines()
    assert header.split() == [
        "name",
        "library",
        "variables",
        "parameters",
        "conditioning",
        "gap",
        "found",
        "trained",
    ]
    assert row.split() == ["koza-2", "koza", "2", "280,000", "8.8", "44%", "17", "min"]
    assert json.loads(run("models", "--json").stdout) == [{"name": "koza-2", "path": str(tmp_path), **card}]


def test_models_says_so_when_there_are_none(monkeypatch):
    monkeypatch.setattr(checkpoints, "list_generators", list)
    assert "No pre-trained generator is installed" in run("models").stdout


def test_bench_runs_the_methods_asked_for_and_prints_their_recovery(regressor, tmp_path):
    out = tmp_path / "runs.jsonl"
    options = ["--method", "dgsr", "--method", "gp", "--seeds", "2", "--budget", "50", "--out", str(out)]
    result = run("bench", "nguyen", "--problem", "Nguyen-1", *options)
    assert "Nguyen-1 dgsr seed 1: failed" in result.stderr  # the fake one needs two variables
    assert result.exit_code == 1
    assert len(out.read_text().splitlines()) == 4
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["dgsr", "1", "2", "2", "0.0"] in [row[:5] for row in rows]  # problems, runs, failed, recovery
    assert ["dgsr", "gp", "1", "0", "0", "1"] in rows
    assert rows[-1] == ["Nguyen-1", "0", "of", "2", "0", "of", "2"]


@pytest.mark.parametrize(
    "arguments", [["unheard-of"], ["nguyen", "--problem", "x"], ["nguyen", "--method", "x"]]
)
def test_bench_names_an_unknown_set_problem_or_method(arguments):
    result = run("bench", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert "\n" not in result.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["bench", "nguyen", "--out"], "missing/runs.jsonl"),
        (["bench", "nguyen", "--out"], "."),
        (["bench", "--table", "laws", "--hours", "0", "--out"], "file"),
    ],
)
def test_a_place_where_runs_cannot_be_kept_is_named_with_what_to_do(tmp_path, arguments, place):
    (tmp_path / "file").touch()
    result = run(*arguments, str(tmp_path / place))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / place} cannot be read or written (")
    assert result.stderr.endswith("name a place in a folder that exists, and that may be read and written.\n")


def test_bench_without_any_process_is_refused(tmp_path):
    out = tmp_path / "runs.jsonl"
    result = run("bench", "nguyen", "--method", "gp", "--n-jobs", "0", "--out", str(out))
    assert (result.exit_code, result.stdout, out.exists()) == (2, "", False)
    assert result.stderr == (
        "error: n_jobs=0 leaves no run a process; give 1, or more, or -1 for one per core.\n"
    )


def test_bench_without_any_time_is_refused_before_a_run_fails(tmp_path):
    out = tmp_path / "runs.jsonl"
    result = run("bench", "nguyen", "--method", "gp", "--max-time", "0", "--out", str(out))
    assert (result.exit_code, result.stdout, out.exists()) == (2, "", False)
    assert result.stderr.startswith("error: --max-time 0 leaves no run any time")


def test_pretrain_passes_on_what_was_given_and_nothing_else(monkeypatch, tmp_path):
    given = {}

    def pretrain(library, n_variables, out, *, callback, **options):
        given.update(options, library=library, n_variables=n_variables, out=out)
        callback(
            pretraining.Progress(
                step=1, steps=9, seconds=2.0, loss=0.5, validation=None, share=1 / 9, seconds_left=16.0
            )
        )

    monkeypatch.setattr(pretraining, "pretrain", pretrain)
    result = run(
        "pretrain", "--library", "koza", "--n-variables", "2", "--out", str(tmp_path), "--steps", "9"
    )
    assert result.exit_code == 0
    assert given == {
        "library": "koza",
        "n_variables": 2,
        "out": tmp_path,
        "steps": 9,
        "config": "base",
        "training": "base",
        "start_from": None,
        "max_time": None,
        "device": "cpu",
        "n_workers": 0,
        "random_state": 0,
        "resume": True,
    }
    assert result.stderr == "starting 11%, 16 s left: step 1 of 9, loss 0.5\n"
    assert f"--generator {tmp_path}" in result.stdout


def test_pretrain_refuses_a_seed_that_torch_cannot_take(tmp_path):
    given = ["--library", "koza", "--n-variables", "2", "--out", str(tmp_path)]
    result = run("pretrain", *given, "--random-state", str(2**64))
    assert result.exit_code == 2
    assert "for '--random-state'" in result.stderr


def test_pretrain_refuses_an_unknown_library(tmp_path):
    result = run("pretrain", "--library", "x", "--n-variables", "2", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: library='x' is unknown")


# --- as a user runs it ----------------------------------------------------------------------------


def test_a_bad_file_ends_the_program_with_one_line_and_code_2(write):
    done = subprocess.run(
        [*DGSR, "fit", write("a,b\n1,2\n3,4\n"), "--target", "y"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith("data.csv has no column 'y'; its columns are 'a', 'b'.\n")


@pytest.mark.search
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to one process")
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_fit_that_is_interrupted_prints_the_best_so_far(areas, number, code):
    # A shell may have started the tests with SIGINT ignored; a terminal does not start dgsr so.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-c", heard + DGSR[-1], "fit", areas, "--target", "area"]
    options = ["--generator", "none", "--max-evaluations", "1000000000"]
    with open(areas, "a", encoding="utf-8") as file:
        file.write("1,1,100\n")  # no product any more: the search does not end by itself
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        first = next(line for line in iter(process.stderr.readline, "") if "evaluations, " in line)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert "evaluations, " in first
    assert process.returncode == code, err
    assert "note: The search was interrupted; the best formulas so far are kept." in err
    assert "Traceback" not in err
    assert "\narea = " in out
    assert out.rstrip().endswith("stopped: interrupted")


def test_the_help_of_bench_names_every_method():
    words = "".join(run("bench", "--help").stdout.split())  # lines may break after a hyphen
    assert all(name in words for name in METHODS)


def test_help_lists_the_commands_without_loading_torch():
    code = "import sys; from dgsr.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in ("fit", "models", "bench", "pretrain"))
    assert not {"torch", "numba", "sympy", "sklearn", "pandas"} & set(done.stdout.split())


@pytest.mark.search
@pytest.mark.slow
def test_a_fit_prints_nothing_but_its_json_and_loads_neither_benchmarks_nor_pre_training(areas):
    code = "import sys\nfrom dgsr.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, "fit", areas, "--target", "area", *SMALL, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["formula"] == "lambda*`x 1`"
    progress, modules = done.stderr.rstrip().rsplit("\n", 1)
    assert "evaluations" in progress
    modules = set(modules.split())
    assert "dgsr.estimator.regressor" in modules
    assert not {"dgsr.benchmarking", "dgsr.problems", "dgsr.pretraining"} & modules


def test_the_module_is_the_program():
    asked = [sys.executable, "-m", "dgsr", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said == f"dgsr {dgsr.__version__}\n"


def test_version_is_the_packages():
    assert run("--version").stdout == f"dgsr {dgsr.__version__}\n"


@pytest.mark.parametrize("n_rows", [1, 8, 9, 20])
def test_of_a_long_front_eight_rows_are_printed_and_the_chosen_one_is_among_them(n_rows):
    for chosen in range(n_rows):
        first, last = window(chosen, n_rows)
        assert 0 <= first <= chosen < last <= n_rows
        assert last - first == min(8, n_rows)
