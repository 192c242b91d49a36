"""Counts of textbook formulas: how a printed formula is read, what is left out, the committed tables."""

import json
import sys
from collections import Counter
from importlib import resources

import pytest

_DECAY = (
    "<m:mi>y</m:mi><m:mo>=</m:mo><m:mfrac><m:mi>A</m:mi><m:mrow><m:mn>2</m:mn><m:mi>w</m:mi></m:mrow></m:mfrac>"
    "<m:msup><m:mi>e</m:mi><m:mrow><m:mo>−</m:mo><m:mi>b</m:mi><m:mi>t</m:mi></m:mrow></m:msup>"  # noqa: RUF001
    "<m:mo>+</m:mo><m:msub><m:mi>y</m:mi><m:mn>0</m:mn></m:msub>"
)
_NUMBERS = "<m:mi>y</m:mi><m:mo>=</m:mo><m:mn>3.5</m:mn><m:mi>x</m:mi><m:mi>z</m:mi>"
_PROBLEM = "<m:mi>F</m:mi><m:mo>=</m:mo><m:mi>a</m:mi><m:mi>b</m:mi>"


@pytest.fixture(scope="module")
def textbook_counts(benchmark):
    return benchmark("_textbooks.counts")


@pytest.fixture
def counted(benchmark, tmp_path, monkeypatch):
    """The result for a book of one module that holds the given formulas."""

    def count(*formulas: str) -> dict:
        module = tmp_path / "book" / "modules" / "m1"
        module.mkdir(parents=True)
        displayed = "".join(f"<equation><m:math>{formula}</m:math></equation>" for formula in formulas)
        (module / "index.cnxml").write_text(
            '<document xmlns="http://cnx.rice.edu/cnxml" xmlns:m="http://www.w3.org/1998/Math/MathML">'
            f"{displayed}</document>",
            encoding="utf-8",
        )
        out = tmp_path / "out.json"
        monkeypatch.setattr(sys, "argv", ["shipped_counts.py", "textbooks", str(tmp_path), "--out", str(out)])
        benchmark("shipped_counts").main()
        return json.loads(out.read_text(encoding="utf-8"))

    return count


def test_a_printed_formula_is_read_as_its_operators(counted):
    tables = counted(_DECAY)["formulas"]
    assert tables["variables"] == {"5": 1}
    operators = {name: count for name, count in tables["operators"].items() if count}
    assert operators == {"mul": 3, "div": 1, "add": 1, "neg": 1, "exp": 1}
    assert tables["top_level"] == {"sum of 2": 1}
    assert tables["argument_of_a_function"] == {"exp: minus product of 2": 1}
    assert tables["numbers_as_factors"] == {"1/2": 1}


def test_repetitions_decimals_and_problems_of_ours_are_left_out(counted):
    source = counted(_DECAY, _DECAY.replace("<m:mi>A</m:mi>", "<m:mi>A</m:mi>\n"), _NUMBERS, _PROBLEM)[
        "source"
    ]
    assert source["counted_formulas"] == 1
    assert source["repetitions"] == 1
    assert source["left_out"]["numbers with units or decimals"] == 1
    assert source["problems_of_dgsr_left_out"] == 1


def test_a_shape_is_the_same_under_any_renaming_and_order(textbook_counts):
    def difference(first, second, third):
        inner = ("sum", ((1, ("var", first)), (-1, ("var", second))))
        return ("prod", 1, (("var", third), inner), (("var", first),))

    assert textbook_counts.shape(difference("a", "b", "c")) == textbook_counts.shape(
        difference("z", "c", "a")
    )
    assert textbook_counts.shape(difference("a", "b", "c")) != textbook_counts.shape(
        difference("a", "b", "a")
    )


def test_the_committed_tables_count_every_formula_once():
    file = resources.files("dgsr.pretraining") / "data" / "textbook_counts.json"
    counts = json.loads(file.read_text(encoding="utf-8"))
    source = counts["source"]
    assert sum(source["counted_by_book"].values()) == source["counted_formulas"]
    for name, total in (("formulas", "counted_formulas"), ("shapes", "counted_shapes")):
        tables = counts[name]
        for table in ("variables", "top_level", "leaves", "functions_per_formula"):
            assert sum(tables[table].values()) == source[total], table
        roots = Counter({key: n for key, n in tables["parent_to_child"].items() if key.startswith("root > ")})
        assert roots.total() == source[total]
