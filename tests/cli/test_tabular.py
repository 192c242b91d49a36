"""Tables as people have them are read as what they mean, or refused with what to do, and never misread."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dgsr.cli.marks import Marks
from dgsr.cli.tabular import TableError, read_columns, read_table

# Tables that people published with questions to other packages.
PUBLIC_CASES = Path(__file__).parents[1] / "data" / "public_cases"

# The target of each, and the inputs, the number of rows, the first row and the notes that are expected.
INDEX = "with the numbers of the rows is left out: 'rownames'"
READ = {
    "01_xplus1": ("y", ["x"], 6, [1, 2], []),
    "02_exact_three_terms": ("val", ["n"], 49, [1, -23.110606616537147], []),
    "03_de_thousands": (
        "Kraft",
        ["Geschwindigkeit", "Fläche"],
        12,
        [200, 0.5, 120],
        [
            "Windows-1252",
            "200,00, are read as decimal points",
            "3.234,00, are read as marks between thousands",
        ],
    ),
    "04_us_thousands": ("revenue", ["qty", "price"], 10, [1200, 1.5, 1800], ["1,200, .* between thousands"]),
    "05_units_row": (
        "drag",
        ["speed"],
        10,
        [1, 0.3],
        ["Line 2 is taken for units: 's' of 'time', 'm/s' of 'speed', 'N' of 'drag'", "left out: 'time'"],
    ),
    "06_percent": ("response %", ["dose"], 11, [0.1, 3.23], ["without its unit '%': 3.23% is 3.23"]),
    "08_dates": ("flow", ["depth"], 10, [0.1, 0.0664], ["without a number is left out: 'date'"]),
    "12_unicode_minus": ("v", ["T_C"], 13, [-30, 313.12], ["as in \u221230, are read as minus signs"]),
    "12c_nbsp_thousands": (
        "cost",
        ["pop"],
        10,
        [1200, 27.713],
        ["27,713, are read as decimal points", "1 200, are read as marks between thousands"],
    ),
    "12d_missing_codes": (
        "y",
        ["x"],
        20,
        [1, 5],
        ["'y' is -9999 in lines 5, 10, far from its other numbers"],
    ),
    "12e_unit_suffix": ("m", ["d"], 10, [6, 0.2196], ["unit 'mm': 6 mm is 6", "unit 'kg': 0.2196 kg is"]),
    "13_bigint": ("fact", ["n"], 25, [1, 1], []),
    "14_trailing_delim": ("y", ["x"], 11, [0, 2], ["Column 1 has no name and the numbers of the rows"]),
    "15_preamble": ("absorbance", ["wavelength"], 17, [420, 0.02198], ["Line 4 names .*: lines 1, 2"]),
    "16_categorical": ("weight", ["length"], 14, [10, 20], ["without a number is left out: 'species'"]),
    "17_yesno": ("cost", ["smoker", "age"], 10, [1, 20, 660], ["Yes and no in 'smoker' are read as 1 and 0"]),
    "18_sep_line": ("y", ["x"], 12, [1, 2], []),
    "19_multiline_header": ("Head (m)", ["Flow (L/min)"], 12, [0, 30], []),
    "26_damped_ramp": ("y", ["x"], 14, [9.65827, 0.551402], []),
    "27_plant_height": ("height", ["day"], 12, [7, 17.93], []),
    "28_six_points": ("y", ["x"], 6, [60, 24.0688], []),
    "30_sigmoid53": ("y", ["x"], 53, [1, 0], []),
    "31_trendline30": ("Y", ["X"], 30, [1, 4], []),
    "32_decay13": ("y", ["x"], 13, [30, 338.7], []),
    "33_zero_residual": ("y", ["x"], 10, [1, 0.013431457878085256], []),
    "36_base_precision": ("basePrecision", ["level"], 80, [1, 24], []),
    "37_xp": ("exp", ["level"], 6, [1, 14], []),
    "38_thermistor": ("T", ["R"], 7, [32128, 0], []),
    "41_pass20": ("Pass", ["Hours"], 20, [0.5, 0], []),
    "43_pressure": ("pressure", ["temperature"], 19, [0, 2e-4], [INDEX]),
    "44_trees": ("Volume", ["Girth", "Height"], 31, [8.3, 70, 10.3], [INDEX]),
    "47_orings": ("Total", ["Temperature", "Erosion", "Blowby"], 23, [53, 3, 2, 5], [INDEX]),
    "53_nusselt16": ("Nu", ["Re", "Pr", "r"], 16, [49000, 2.3, 0.947, 277], []),
    "62_sparse": (
        "volume",
        ["area", "height"],
        60,
        [3.548, 2.618, 3.0962],
        ["with most cells missing is left out: 'pool_area'"],
    ),
    "67_segmented21": ("y", ["x"], 21, [45, 5.31], []),
    "68_zigzag14": ("dep", ["indep"], 14, [1, 1], []),
    "69_radial_velocity": ("v", ["JD"], 46, [2454294.5084288, -2.08468951], []),
    "70_hourly": ("T2m", ["hour"], 24, [0, -0.60313714], []),
}
# The target of each, and the message that is expected.
REFUSED = {
    "03b_de_only_int_thousands": (
        "F",
        "line 4: '1.000' for 'F' can be 1 or 1000; give --decimal . if the point is the decimal mark, or "
        "--thousands . if it stands between thousands.",
    ),
    "07_currency": ("price", "line 2: '$110,000' for 'price' can be 110 or 110000; give --decimal ,"),
    "09_dup_names": ("rho", "has 2 columns named 'P'; give each its own name."),
    "10_no_header": ("y", "starts with a row of numbers; add a first line that names the columns."),
    "12b_detection": ("abs", "line 2: '<0.05' for 'abs' is not a number; write a number in place of a limit"),
    "50b_mixed_decimal": (
        "y",
        "line 2: '2,5' for 'b' is not a number where '.' is the decimal mark; write all",
    ),
    "50c_us_in_semicolon": ("cost", "line 4: '1,400' for 'cost' can be 1.4 or 1400; give --decimal , if"),
    "50d_unquoted_thousands": (
        "cost",
        "line 2: 4 cells for 2 columns; give every row one cell per column; numbers that have commas need",
    ),
}


def test_every_public_case_has_an_expectation():
    assert sorted(path.stem for path in PUBLIC_CASES.iterdir()) == sorted([*READ, *REFUSED])


@pytest.mark.parametrize("case", READ)
def test_a_public_case_is_read_as_it_is_meant(case):
    target, names, n_rows, first_row, notes = READ[case]
    table = read_table(PUBLIC_CASES / f"{case}.csv", target)
    assert (list(table.feature_names), len(table.y)) == (names, n_rows)
    assert [*table.X[0], table.y[0]] == first_row
    assert len(table.notes) == len(notes)
    for said, expected in zip(table.notes, notes, strict=True):
        assert re.search(expected, said)


@pytest.mark.parametrize("case", REFUSED)
def test_a_public_case_that_cannot_be_read_is_refused_with_what_to_do(case):
    target, message = REFUSED[case]
    with pytest.raises(TableError, match=re.escape(message)):
        read_table(PUBLIC_CASES / f"{case}.csv", target)


@pytest.mark.parametrize(
    ("case", "target", "options", "row"),
    [
        ("03b_de_only_int_thousands", "F", {"thousands": "."}, [500, 1000]),
        ("03b_de_only_int_thousands", "F", {"decimal": ","}, [500, 1000]),
        ("03b_de_only_int_thousands", "F", {"decimal": "."}, [500, 1]),
        ("03b_de_only_int_thousands", "F", {"thousands": "none"}, [500, 1]),
        ("07_currency", "price", {"thousands": ","}, [900, 158000]),
        ("50c_us_in_semicolon", "cost", {"decimal": "."}, [700, 1400]),
        ("50c_us_in_semicolon", "cost", {"decimal": ","}, [700, 1.4]),
    ],
)
def test_the_marks_that_a_person_gives_settle_what_a_number_is(case, target, options, row):
    table = read_table(PUBLIC_CASES / f"{case}.csv", target, **options)
    assert [table.X[2, 0], table.y[2]] == row


def test_columns_that_are_left_out_are_kept_when_they_are_named():
    trees = read_table(PUBLIC_CASES / "44_trees.csv", "Volume", ["rownames", "Girth"])
    assert (trees.feature_names, trees.notes) == (("rownames", "Girth"), ())
    sparse = read_table(PUBLIC_CASES / "62_sparse.csv", "volume", ["area", "pool_area"])
    assert len(sparse.y) == 6


@pytest.fixture
def read(tmp_path):
    """Read a table from its text, with the target y."""

    def read(text, **options):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path, "y", **options)

    return read


# Texts of tables, and the rows that they have.
MEANINGS = {
    "a leading zero is followed by decimals": ("a;y\n1.234;1\n0.500;2\n", [[1.234, 1], [0.5, 2]]),
    "other columns settle the mark": ("a;y\n1.234;1,5\n2.345;2,5\n", [[1234, 1.5], [2345, 2.5]]),
    "other numbers of digits settle the mark": ("a;y\n1.2345;1\n12.500;2\n", [[1.2345, 1], [12.5, 2]]),
    "groups are no more than three digits": ("a;y\n1234.567;1\n1.000;2\n", [[1234.567, 1], [1, 2]]),
    "an exponent follows decimals": ("a;y\n1.234E+03;1\n3.456E+05;2\n", [[1234, 1], [345600, 2]]),
    "two marks are in order": ("a;y\n1,234.5;1\n1,000;2\n", [[1234.5, 1], [1000, 2]]),
    "a repeated mark is between thousands": ("a;y\n1.234.567;1\n1.000;2\n", [[1234567, 1], [1000, 2]]),
    "points are decimal where commas separate": ("a,y\n1.234,2.345\n5,6\n", [[1.234, 2.345], [5, 6]]),
    "quoted thousands beside decimals": ('a,y\n"1,200",1.5\n800,2\n', [[1200, 1.5], [800, 2]]),
    "quoted decimals": ('a,y\n"3,5",2\n4,6\n', [[3.5, 2], [4, 6]]),
    "apostrophes": ("a,y\n1'200,1\n2\u2019345\u2019678.5,2\n", [[1200, 1], [2345678.5, 2]]),
    "spaces of all kinds": (
        "a;y\n1\u00a0200;1 200\n1\u202f200;1\u2009200,5\n",
        [[1200, 1200], [1200, 1200.5]],
    ),
    "errors of spreadsheets are no comments": ("a,y\n#N/A,1\n1,2\n# c,d\n#NV,#NUM!\n3,4\n", [[1, 2], [3, 4]]),
    "words and dashes for missing cells": ("a,y\n-,1\n1,2\nn.a.,3\n3,4\n—,5\n--,#REF!\n", [[1, 2], [3, 4]]),
    "white space": ("  a     y\n 1.0   2.5 \n\n  3     4\n#N/A   5\n", [[1, 2.5], [3, 4]]),
    "exponents of Fortran": ("a,y\n1.5D+01,2d0\n3.0D+01,4d0\n", [[15, 2], [30, 4]]),
    "spaces and quotes behind commas": ('a, y\n1, "2"\n3, "4"\n', [[1, 2], [3, 4]]),
    "currencies": ("a;y\n1.200,50 €;1\n800,00 €;2\n", [[1200.5, 1], [800, 2]]),
    "names of rows": ('"","a","y"\n"Mazda",1,2\n"Volvo",3,4\n', [[1, 2], [3, 4]]),
    "a word for what separates": ('"sep=|"\na|y\n1|2\n3|4\n', [[1, 2], [3, 4]]),
    "units beside a column of text": ("k,a,y\nname,m/s,°C\nred,1,2\nblue,3,4\n", [[1, 2], [3, 4]]),
    "a few levels in order are no index": ("a,b,y\n1,4,2\n2,4,5\n3,4,8\n", [[1, 4, 2], [2, 4, 5], [3, 4, 8]]),
}


@pytest.mark.parametrize(("text", "rows"), MEANINGS.values(), ids=MEANINGS)
def test_a_cell_is_read_as_what_the_table_shows_it_to_mean(read, text, rows):
    table = read(text)
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), rows)


# Texts of tables, and what is said of them.
REFUSALS = {
    "three decimals throughout": (
        "a\ty\n1.234\t1\n5.678\t2\n",
        "'1.234' for 'a' can be 1.234 or 1234; give --dec",
    ),
    "quoted thousands alone": (
        'a,y\n"1,200",1\n800,2\n',
        "can be 1.2 or 1200; give --decimal , if the comma",
    ),
    "both marks in a column": (
        "a;y\n1,5;1\n2.5;2\n",
        "line 2: '1,5' for 'a' is not a number where '.' is the",
    ),
    "points between thousands and commas between cells": (
        'a,y\n"1.200,50",1\n8,2\n',
        "where '.' is the decimal",
    ),
    "two units": ("a,y\n6 mm,1\n3 cm,2\n", "'6 mm' for 'a' is not a number; give all cells .* the same unit"),
    "a unit in some cells": (
        "a,y\n6%,1\n3,2\n",
        "'6%' for 'a' is not a number; give all cells .* the same unit",
    ),
    "dates": (
        "a,y\n1,2020-01-01\n2,2020-01-02\n",
        "is not a number; write numbers in place of dates, such as",
    ),
    "units with a number": (
        "a,b,y\ns,1,N\n1,2,3\n4,5,6\n",
        "if the line has units, remove it, and give them to dgsr fit by --units",
    ),
    "an index with gaps": (
        ",a,y\n0,1,2\n2,3,4\n",
        "column 1 no name; .* to_csv.*index=False.* row.names=FALSE",
    ),
    "another target below other lines": (
        "Made by X\n\na,b\n1,2\n",
        "no column 'y'; its columns are 'a', 'b'",
    ),
    "an open quote around the rest": (
        'a,y,note\n1,2,"x\n3,4,z\n5,6,z\n',
        "a quote is never closed; check its",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSALS.values(), ids=REFUSALS)
def test_what_has_no_one_meaning_is_refused_with_what_to_do(read, text, message):
    with pytest.raises(TableError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, "--decimal ';' is no decimal mark; give . or , for it."),
        (
            {"thousands": "x"},
            "--thousands 'x' is no mark between thousands; give , or . or ' or space or none.",
        ),
        (
            {"decimal": ".", "thousands": "."},
            "--decimal and --thousands are both .; give two different marks.",
        ),
    ],
)
def test_marks_that_cannot_be_are_refused(read, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read("a;y\n1;2\n3;4\n", **options)


def test_an_index_and_a_sparse_column_are_left_out_only_beside_other_inputs(read):
    index = "".join(f"{i},{i * i}\n" for i in range(9))
    assert read(f"a,y\n{index}").feature_names == ("a",)
    sparse = "".join(f"{i if i < 3 else ''},{i * i}\n" for i in range(9))
    assert len(read(f"a,y\n{sparse}").y) == 3


def test_columns_of_a_fit_are_read_with_what_is_said_of_them(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('n;"b\n(m)";a\n1;1.200,5;3\n;;\n2;;4\n', encoding="utf-8")
    values, _, notes, _ = read_columns(path, ["b\n(m)", "n"])
    np.testing.assert_array_equal(values, [[1200.5, 1], [np.nan, np.nan], [np.nan, 2]])
    assert [note.split()[0] for note in notes] == ["Commas", "Points"]


def test_a_long_cell_is_read_in_time_in_proportion_to_its_length(read):
    # A search that goes back over the digits for each of them would take minutes.
    long = "1" * 200_000
    for cell in (f"{long}x", f"{long}.{long}x", f"{long},{long}.", f"1{',111' * 50_000}x"):
        for marks in (Marks(".", ""), Marks(".", ","), Marks(",", ".")):
            assert np.isnan(marks.numbers(np.array([cell], dtype=object))).all()
    with pytest.raises(TableError, match="is not a number"):
        read(f"a,y\n{'1' * 100_000}x,2\n3,4\n")


def written(number: float, marks: Marks, minus: str) -> str:
    """Return a number as a program with these marks writes it."""
    text = repr(abs(number)).removesuffix(".0")
    whole, point, rest = text.partition(".")
    if marks.thousands and "e" not in text:
        whole = f"{int(whole):,}".replace(",", marks.thousands)
    return minus * (number < 0) + whole + (marks.decimal if point else "") + rest


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**7), 10**7).map(float),
    st.integers(-(10**6), 10**6).map(lambda number: number / 1000),
)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=6),
    st.sampled_from([",", ";", "\t", "  "]),
    st.builds(Marks, st.sampled_from(".,"), st.sampled_from(["", *"., '\u00a0\u202f\u2009\u2019"])),
    st.sampled_from(["-", "\u2212", "\u2013"]),
    st.booleans(),
)
def test_a_table_is_read_as_it_was_written_or_refused(
    tmp_path_factory, rows, separator, marks, minus, is_told
):
    assume(marks.decimal != marks.thousands)
    # Points are between thousands where commas separate the cells only if that is said.
    assume(is_told or not (separator == "," and marks == Marks(",", ".")))
    assume(separator != "  " or marks.thousands != " ")
    lines = [separator.join(f'"{written(cell, marks, minus)}"' for cell in row) for row in rows]
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_text("\n".join([separator.join(["a", "b", "y"]), *lines]), encoding="utf-8")
    told = {
        "decimal": marks.decimal,
        "thousands": {"": "none", "\u2019": "'"}.get(marks.thousands, marks.thousands),
    }
    if marks.thousands.isspace():
        told["thousands"] = "space"
    refusal = ""
    try:
        table = read_table(path, "y", ["a", "b"], **(told if is_told else {}))
        np.testing.assert_array_equal(np.column_stack([table.X, table.y]), rows)
    except TableError as error:
        refusal = str(error)
    assert not refusal or (not is_told and " can be " in refusal)
