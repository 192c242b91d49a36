"""The examples in docstrings hold: each is run, in a module of its own names."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dgsr


def examples():
    """Docstrings with examples, of everything that the package's modules define."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in pkgutil.walk_packages(dgsr.__path__, "dgsr."):
        if module.name.rpartition(".")[2] == "__main__":
            continue
        found = finder.find(importlib.import_module(module.name))
        yield from (example for example in found if example.examples)


EXAMPLES = list(examples())


def test_the_examples_are_found():
    names = {example.name for example in EXAMPLES}
    assert {"dgsr.estimator.regressor.DGSRRegressor", "dgsr.expressions.trees.syntax.parse"} <= names
    assert sum(len(example.examples) for example in EXAMPLES) >= 30


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_of_a_docstring_holds(example):
    said = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
