"""A formula in another language gives the numbers of the compiled evaluator."""

from __future__ import annotations

import ast
import copy
import ctypes
import itertools
import keyword
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import sympy
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dgsr.expressions import Constraints, Expression, get_library
from dgsr.expressions.exports.identifiers import identifiers
from dgsr.expressions.programs.library import library_of
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior
from dgsr.search.evolution import random_population
from searches import with_own

PHYSICS = get_library("physics", 3)
# Points at and near the edges of the operators' domains.
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 30.0, -30.0, 800.0, -800.0]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def points(seed, n=48, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=2.0, size=(n, d))
    return np.where(rng.random((n, d)) < 0.2, rng.choice(EDGES, (n, d)), X)


def drawn(seed, n_programs, library=PHYSICS):
    """Random programs, of the genetic programming and of the prior."""
    d = library.n_variables
    limits = Constraints(max_length=20)
    # Every operator as often as any other.
    grammar = limits.grammar(library)._replace(weight=np.ones((len(library) + 1, len(library))))
    bred = random_population(n_programs, library, grammar, new_state(seed), 1, 4)
    bred.constants[:] = np.random.default_rng(seed).choice(
        [-3.0, -1.0, -0.37, 0.5, 1 / 3, 2.0, 2.5, 4.0, 1e-3], bred.constants.shape
    )
    prior = Prior.default_for(library, d)
    laws = prior.draw(n_programs, 8, d, library, limits, new_state(seed)).programs
    return [population[i] for population in (bred, laws) for i in range(n_programs)]


def is_settled(expression, X, may_overflow=True):
    """Rows whose value does not hang on the last digit of anything on the way.

    Where log(exp(x)/exp(x)) is 0 or 1e-16 by the rounding of exp, no two implementations need agree on what
    it is divided by. Nor need they where a number is next to the largest or the smallest there is, nor where
    a part loses its value for operands that rounding may change by more than 1e-11 of themselves, as
    log(sin(1e20)) does, or next to operands for which it has one, as arcsin does at 1. Without
    `may_overflow` rows where a part overflows are left out, too: two forms of a formula need not agree there.
    """
    rng = np.random.default_rng(0)
    within = np.ones(len(X), dtype=bool)
    # The first row of values is undisturbed; they are of shape (n_draws, n_samples).
    by = np.array([0.0, 1e-15, 1e-15, 1e-15])[:, None]

    def known(values):
        return np.ptp(values, axis=0) <= 1e-11 * np.abs(values[0])

    def applied(name, operands):
        return evaluate((name, *"ab"[: len(operands)]), dict(zip("ab", operands)))

    def disturbed(tree):
        if not isinstance(tree, tuple):
            return np.broadcast_to(evaluate(tree, columns), (len(by), len(X)))
        operands = [disturbed(child) for child in tree[1:]]
        result = applied(tree[0], operands)
        with np.errstate(all="ignore"):
            size = np.abs(result)
            near_limits = ((size > 1e290) & (size < np.inf)) | ((size < 1e-290) & (size > 0.0))
            had_values = np.all(np.isfinite(operands), axis=0) if operands else True
            vanished = (size == 0.0) & had_values & np.all([a != 0.0 for a in operands], axis=0)
            vanished &= tree[0] in ("mul", "div", "pow", "square", "cube")
            overflows = np.isinf(result) & had_values & np.all([a != 0.0 for a in operands], axis=0)
            within[:] &= may_overflow | ~overflows.any(axis=0)
            underflows = (tree[0] == "exp") & (operands[0] < -650.0) & (operands[0] > -np.inf)
            lost = had_values & ~np.isfinite(result)
            for signs in itertools.product((-1e-11, 1e-11), repeat=len(operands)):
                nearby = applied(tree[0], [a * (1.0 + sign) for a, sign in zip(operands, signs)])
                within[:] &= ~(lost & np.isfinite(nearby)).any(axis=0)
            within[:] &= ~lost.any(axis=0) | np.all([known(a) for a in operands], axis=0)
            within[:] &= ~(near_limits | vanished | underflows).any(axis=0)
            return result * (1.0 + rng.uniform(-by, by, result.shape))

    columns = dict(zip(expression.feature_names, X.T))
    values = disturbed(expression.tree)
    with np.errstate(all="ignore"):
        return within & (known(values) | ~np.isfinite(values).any(axis=0))


def assert_same(expression, X, values, settled=None):
    """Equal where the evaluator's value is finite; not finite in the same rows."""
    settled = is_settled(expression, X) if settled is None else settled
    expected, values = expression(X)[settled], np.asarray(values)[settled]
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(values), finite, err_msg=str(expression))
    np.testing.assert_allclose(
        values[finite], expected[finite], rtol=1e-9, atol=1e-300, err_msg=str(expression)
    )


def function_of(source, name="formula"):
    module = {}
    exec(compile(source, "<exported>", "exec"), module)
    return module[name]


def python_values(expression, X):
    return function_of(expression.to_python())(*np.asarray(X, dtype=float).T)


def torch_values(expression, X):
    return expression.to_torch()(torch.tensor(X)).detach().numpy()


def compiled(expressions, folder):
    """Compile the C source of expressions into one library; return their functions of a matrix."""
    source = "".join(expression.to_c(f"f{i}") for i, expression in enumerate(expressions))
    (folder / "formulas.c").write_text(source, encoding="ascii")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    made = subprocess.run(
        [COMPILER, *strict, "-O1", "-shared", "-fPIC", "-o", "formulas.so", "formulas.c", "-lm"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    library = ctypes.CDLL(str(folder / "formulas.so"))

    def matrix_function(i, d):
        scalar = getattr(library, f"f{i}")
        scalar.restype, scalar.argtypes = ctypes.c_double, [ctypes.c_double] * d
        return lambda X: np.array([scalar(*row) for row in X.tolist()])

    return [matrix_function(i, len(e.feature_names)) for i, e in enumerate(expressions)]


needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) is installed")


# ---- the same numbers ---------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@example(131639)  # log(sin(1e20)), which the last digit of exp decides
@given(st.integers(0, 2**31))
def test_python_numpy_and_torch_give_the_values_of_the_evaluator(seed):
    X = points(seed)
    for expression in drawn(seed, 6):
        settled = is_settled(expression, X)
        assert_same(expression, X, python_values(expression, X), settled)
        assert_same(expression, X, expression.numpy_function()(*X.T), settled)
        assert_same(expression, X, torch_values(expression, X), settled)


@pytest.fixture
def numpy_for_jax(monkeypatch):
    """A module jax whose jax.numpy is numpy, which has the same functions."""
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(numpy=np))
    monkeypatch.setitem(sys.modules, "jax.numpy", np)


def test_the_source_for_jax_gives_the_values_of_the_evaluator(numpy_for_jax):
    X = points(5)
    texts = [Expression.from_text(text, PHYSICS) for text in ("2.5", "x3", "1/(1 + 1/x2)")]
    sums = [sum_of_all_operators(get_library(name, 3)) for name in ("koza", "synth", "physics")]
    for expression in [*drawn(5, 6), *texts, *sums]:
        source = expression.to_jax()
        assert source.startswith("import jax.numpy as jnp")
        assert not re.search(r"\bnp\.", source)
        with np.errstate(all="ignore"):
            values = function_of(source)(*X.T)
        assert values.shape == (len(X),)
        assert_same(expression, X, values)
    with pytest.raises(ValueError, match="name='jnp' cannot be a function"):
        texts[0].to_jax("jnp")


def test_whole_numbers_beyond_32_bits_are_written_as_floats_since_jax_has_no_such_integers():
    expression = Expression.from_text("x1 - 3000000000", get_library("physics", 1))
    assert "- 3000000000.0\n" in expression.to_jax()
    assert "- 3000000000\n" in expression.to_python()
    assert "- 1700000000\n" in Expression.from_text("x1 - 1700000000", get_library("physics", 1)).to_jax()


def test_a_column_that_is_called_as_the_module_of_jax_has_another_argument():
    expression = Expression.from_text("sin(x1)", get_library("physics", 1)).with_feature_names(["jnp"])
    assert "def formula(jnp_):" in expression.to_jax()


def sum_of_all_operators(library):
    """One term for each operator of a library, applied to the columns in turn."""
    columns = itertools.cycle([library.index["x1"], library.index["x2"], library.index["x3"]])
    terms = [
        [token, *itertools.islice(columns, library.tokens[token].arity)]
        for token in range(len(library.operators))
    ]
    tokens = [library.index["add"]] * (len(terms) - 1) + list(itertools.chain.from_iterable(terms))
    return Expression(library, tokens)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) for name in ("koza", "synth", "physics")]
)
def test_numba_compiles_every_operator_to_the_values_of_the_evaluator(name):
    expression = sum_of_all_operators(get_library(name, 3))
    inside = np.random.default_rng(0).uniform(0.2, 0.8, (40, 3))
    X = np.concatenate([inside, points(0)])
    assert np.isfinite(expression(inside)).all()
    function = numba.njit(function_of(expression.to_python()))
    assert_same(expression, X, function(*X.T))
    assert function(*inside[0]) == pytest.approx(expression(inside[:1])[0], rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["2.5", "1/(1 + 1/x2)", "x3"])
def test_numba_compiles_formulas_that_leave_out_columns(text):
    expression, X = Expression.from_text(text, PHYSICS), points(1)
    source = expression.to_python()
    values = numba.njit(function_of(source))(*X.T)
    assert_same(expression, X, values)
    assert values.shape == function_of(source)(*X.T).shape == (len(X),)


@settings(max_examples=15, deadline=None)
@example(16639, "physics")  # (v**2)**(-2) vanishes where 1/v**4 overflows on the way
@example(15988637, "physics")  # exp(533)**12 overflows beside the zero that it is multiplied by
@example(206, "koza-const")  # exp(x1) - (x1 - x2) is written exp(x1) - x1 + x2
@given(st.integers(0, 2**31), st.sampled_from(["physics", "koza-const"]))
def test_the_text_reads_back_to_a_formula_of_the_same_values(seed, name):
    edges = np.random.default_rng(seed).choice([*EDGES, np.inf, -np.inf, np.nan], (60, 3))
    X = np.concatenate([points(seed), edges])
    for expression in drawn(seed, 6, get_library(name, 3)):
        read = Expression.from_text(expression.text, expression.library)
        settled = is_settled(expression, X, may_overflow=False) & is_settled(read, X, may_overflow=False)
        assert_same(expression, X, read(X), settled)


@pytest.mark.parametrize("operators", ["+ * ^", "+ * sqrt inv", "+ * neg ^ sin"])
def test_the_text_reads_back_without_the_operators_for_its_signs(operators):
    library = library_of(operators.split()).with_variables(3)
    X = points(4)
    for expression in drawn(4, 40, library):
        read = Expression.from_text(expression.text, library)
        settled = is_settled(expression, X, may_overflow=False) & is_settled(read, X, may_overflow=False)
        assert_same(expression, X, read(X), settled)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x1/x1", "x1/x1"),
        ("x2*x1/x2", "x2*x1/x2"),
        ("1/(1/x2/x1**2)", "1/(1/(x2*x1**2))"),
        ("log(x1) - log(x1)", "log(x1) - log(x1)"),
        ("exp(0.5*log(x1))", "exp(0.5*log(x1))"),
        ("0*log(x1) + x2", "0*log(x1) + x2"),
        ("log(x1)**0", "log(x1)**0"),
        ("(x1**-2)**-2", "1/(1/x1**2)**2"),
        ("x1 + x1 + x2*x2/3", "2*x1 + x2**2/3"),
        ("(x1/x2)*x1*sin(x2)/x2", "x1**2*sin(x2)/x2**2"),
    ],
)
def test_the_text_gains_no_value_at_the_edges_of_the_domain(text, printed):
    expression = Expression.from_text(text, get_library("physics", 2))
    assert expression.text == printed
    X = np.array([[a, b] for a in (*EDGES, np.inf, -np.inf, np.nan) for b in (0.3, 0.0, -2.0, np.inf)])
    again = Expression.from_text(expression.text, expression.library)
    assert_same(expression, X, again(X), np.ones(len(X), dtype=bool))


@pytest.mark.parametrize("text", ["2*x2", "3*x1 - x2", "2*sin(x1)"])
@pytest.mark.parametrize("library", ["koza", "physics"])
def test_a_multiple_has_a_value_where_x1_is_0(text, library):
    expression = Expression.from_text(text, get_library(library, 2))
    assert np.isfinite(expression([[0.0, 1.0]])).all()
    assert expression.text == text


@settings(max_examples=15, deadline=None)
@example(156692376)  # 0**(-x2**x2/x2), to sympy zoo**(x2**x2/x2)
@given(st.integers(0, 2**31))
def test_sympy_gives_the_values_where_the_formula_has_one(seed):
    """Where it has none sympy may have one: x/x is 1 to it."""
    X = points(seed)
    for expression in drawn(seed, 2):
        rows = is_settled(expression, X) & np.isfinite(expression(X))
        if not rows.any():
            continue
        with np.errstate(all="ignore"):
            values = sympy.lambdify(sympy.symbols("x1 x2 x3"), expression.sympy)(*X[rows].astype(complex).T)
        np.testing.assert_allclose(values + np.zeros(rows.sum()), expression(X[rows]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("(x1 - x1)**(-x2)", "0**(-x2)"),
        ("1/(x1 - x1)**x2", "0**(-x2)"),
        ("sqrt((x1 - x1)**(-x2/3))", "sqrt(0**(-x2/3))"),
        ("x1*(0*x1)**(-x2) + 1", "x1*0**(-x2) + 1"),
        ("((x1 - x1)**(-x2))**-2", "0**(2*x2)"),
    ],
)
def test_sympy_has_powers_of_0_and_no_infinity_for_them(text, written):
    expression = Expression.from_text(text, get_library("physics", 2))
    assert str(expression.sympy) == written
    X = np.array([[0.3, -2.0], [-1.0, 0.5]])
    with np.errstate(all="ignore"):
        values = sympy.lambdify(sympy.symbols("x1 x2"), expression.sympy)(*X.astype(complex).T)
    rows = np.isfinite(expression(X))
    np.testing.assert_allclose(values[rows], expression(X)[rows])


@pytest.mark.parametrize(
    "text",
    [
        "x1/(x2 - x2)", "x1/(x1/(x2 - x2))", "tanh(x1/(x2 - x2))", "x2 + x1*log(x2 - x2)", "x1**2/(0*x2)**2",
        "exp(-abs(x1/(x2 - x2)))", "x1*(x2 - x2)**-1", "(x2 - x2)**-0.5 + x1", "x1/0", "exp(-x1/0)",
    ],
)  # fmt: skip
def test_sympy_is_nan_where_a_part_is_infinite_everywhere(text):
    expression = Expression.from_text(text, get_library("physics", 2))
    assert not np.isfinite(expression(points(0, d=2))).any()
    assert expression.sympy is sympy.nan


@needs_compiler
def test_c_gives_the_values_of_the_evaluator(tmp_path):
    expressions = drawn(5, 75)
    X = points(5)
    for expression, function in zip(expressions, compiled(expressions, tmp_path)):
        assert_same(expression, X, function(X))


def test_most_rows_of_random_programs_are_compared_and_some_are_undefined():
    X = points(1)
    expressions = drawn(1, 60)
    settled = np.array([is_settled(expression, X) for expression in expressions])
    finite = np.isfinite([expression(X) for expression in expressions])
    assert settled.mean() > 0.8
    assert 0.3 < finite[settled].mean() < 0.9
    names = {PHYSICS.tokens[token].name for expression in expressions for token in expression.tokens}
    assert names >= set(PHYSICS.operators)


EDGE_CASES = [
    "1/(1 + 1/x1)", "1/(2 + x2/log(x1))", "exp(-1/abs(x1))", "tanh(1/x1)", "tanh(log(x1))", "exp(log(x1))",
    "(1/x1)**2", "2**(-1/abs(x1))", "abs(x1)**0", "(x1 - x1)**0.0", "1/x1 - 1/x1", "exp(-exp(x1))", "x1**-1",
    "x1**0.5", "x1**(1/3)", "(-2)**x1", "x1**x2", "log(-x1)", "sqrt(x1)", "arcsin(x1)", "arccos(x1)",
    "x1 + 1e300*x1*1e300", "1/exp(x1)", "x1/tanh(x1)", "cos(1/x1)", "-x1**2", "(-x1)**2",
    "2 - (x1 - (2 - x2))", "x1/(x2/(x1/3))", "-(-x1 - x2)", "x1 - -2.5*x2", "x1*(x2*(-3))",
    "x1**5", "x1**4", "x1**3", "(x1 + 1)**2",
    "x1*(x1/(x1*(x2 + 1)))", "x2 + (x1 - x1)", "x2 - (x1 - x1)",
]  # fmt: skip


@pytest.mark.parametrize("text", EDGE_CASES)
def test_what_is_infinite_on_the_way_is_not_finite_in_the_end(text):
    """And what is finite in the order of the program is; no row is left out here."""
    expression = Expression.from_text(text, get_library("physics", 2))
    X = np.array([[a, b] for a in (*EDGES, 1e200, np.inf, -np.inf, np.nan) for b in (0.3, 0.0, np.inf)])
    everywhere = np.ones(len(X), dtype=bool)
    assert_same(expression, X, python_values(expression, X), everywhere)
    assert_same(expression, X, expression.numpy_function()(*X.T), everywhere)
    assert_same(expression, X, torch_values(expression, X), everywhere)


@needs_compiler
def test_what_is_infinite_on_the_way_is_not_finite_in_c_either(tmp_path):
    expressions = [Expression.from_text(text, get_library("physics", 2)) for text in EDGE_CASES]
    X = np.array([[a, b] for a in (*EDGES, 1e200, np.inf, -np.inf, np.nan) for b in (0.3, 0.0, np.inf)])
    for expression, function in zip(expressions, compiled(expressions, tmp_path)):
        assert_same(expression, X, function(X), np.ones(len(X), dtype=bool))


def undefined_numbers():
    library = get_library("physics", 2)
    make = [
        ("div", "const", "const"), ("log", "const"), ("exp", "div", "const", "const"), ("const",),
        ("add", "x1", "log", "const"), ("div", "x1", "exp", "const"), ("pow", "const", "const"),
    ]  # fmt: skip
    for names in make:
        tokens = [library.index[name] for name in names]
        for first in (0.0, -1.0, 2.5, np.inf, np.nan, -np.inf, 1e3):
            yield Expression(library, tokens, [first, 0.0])


def test_formulas_of_undefined_numbers_are_exported_as_such():
    X = points(2, d=2)
    for expression in undefined_numbers():
        for values in (python_values, torch_values):
            finite = np.isfinite(values(expression, X))
            np.testing.assert_array_equal(finite, np.isfinite(expression(X)), err_msg=repr(expression))


@needs_compiler
def test_formulas_of_undefined_numbers_compile(tmp_path):
    X = points(2, d=2)
    expressions = list(undefined_numbers())
    for expression, function in zip(expressions, compiled(expressions, tmp_path)):
        np.testing.assert_array_equal(np.isfinite(function(X)), np.isfinite(expression(X)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_constants_are_written_with_all_their_digits(value):
    library = get_library("koza-const", 1)
    expression = Expression(library, [library.index["const"]], [value])
    assert function_of(expression.to_python())(0.0) == value
    (number,) = re.findall(r"return (.*);", expression.to_c())
    assert float(number) == value
    assert "." in number or "e" in number  # else it would be an int, and 1/2 be 0


# ---- Python -------------------------------------------------------------------------------------


def test_the_python_source_stands_alone():
    source = Expression.from_text("3.4*tanh(0.07*c)", get_library("physics", 1), ["c"]).to_python(
        "absorption"
    )
    script = f"{source}\nprint(repr(float(absorption(10.0))))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(3.4 * math.tanh(0.7), rel=1e-14)
    assert "3.4*tanh(0.07*c)" in ast.get_docstring(ast.parse(source).body[1])


def test_the_python_function_takes_scalars_lists_and_whole_numbers_and_broadcasts():
    function = function_of(
        Expression.from_text("a**-2 + b", get_library("physics", 3), list("abc")).to_python()
    )
    assert function(2, 1, 0) == 1.25
    assert isinstance(function(2, 1, 0), float)
    assert function([1, 2], 0, 0).tolist() == [1.0, 0.25]
    assert function(np.ones((3, 1)), 2.0, np.ones(4)).shape == (3, 4)
    assert not np.isfinite(function(0, 1, 0))
    constant = function_of(Expression.from_text("2.5", get_library("physics", 2)).to_python())
    assert constant(np.ones(3), 1.0).tolist() == [2.5] * 3


def test_changing_the_result_leaves_the_data_as_they_are():
    function = function_of(Expression.from_text("x1", get_library("physics", 1)).to_python())
    x = np.ones(3)
    function(x)[0] = 7.0
    assert (x == 1.0).all()


ODD = ["a b", "lambda", "x-1", "2nd", "a-b", "β", "", "%", '"""\nimport os', "\\", "*/ int x; /*", "y1",
       "M_PI", "np", "value", "t1", "formula", "shape", "__debug__", "double", "a_b", "Δt", "中", "ﬁ",
       "_x", "²", "\udc80"]  # fmt: skip


def test_identifiers_are_distinct_words_and_those_that_are_stay():
    assert identifiers(ODD[:4], {"lambda"}) == ["a_b", "lambda_", "x_1", "x_2nd"]
    assert identifiers(["a b", "a_b", "a-b"], ()) == ["a_b_2", "a_b", "a_b_3"]
    assert identifiers(["β", "Δt", "é", "_x", "M_PI"], (), is_c=True) == [
        "beta",
        "Deltat",
        "e",
        "x",
        "x_M_PI",
    ]
    assert identifiers(["m", "m", ""], ()) == ["m", "m_2", "x3"]


@given(st.lists(st.text(max_size=6), min_size=1, max_size=8), st.booleans())
@example(["None", "None_", "lambda"], False)
def test_any_names_become_distinct_identifiers(names, is_c):
    taken = {*keyword.kwlist, "np"}
    words = identifiers(names, taken, is_c)
    assert len(set(words)) == len(names)
    assert not taken & set(words)
    arguments = ast.parse(f"def f({', '.join(words)}): pass").body[0].args.args
    assert [argument.arg for argument in arguments] == words
    if is_c:
        assert all(re.fullmatch(r"[A-Za-z]\w*", word, re.ASCII) for word in words)


def odd_expression():
    library = get_library("physics", len(ODD))
    tokens = [library.index["add"]] * (len(ODD) - 1)
    for i in range(len(ODD)):
        tokens += [library.index["mul"], library.index["const"], library.index[f"x{i + 1}"]]
    return Expression(library, tokens, 1.5 ** np.arange(len(ODD)), ODD)


def test_columns_of_any_name_are_arguments_that_the_docstring_tells():
    expression = odd_expression()
    X = points(3, d=len(ODD))
    np.testing.assert_allclose(python_values(expression, X), expression(X), rtol=1e-9)
    (_, function, _) = ast.parse(expression.to_python()).body
    docstring = ast.get_docstring(function)
    for argument, name in zip(function.args.args, ODD):
        assert argument.arg == name or f"{argument.arg}: {name!r}" in docstring


@needs_compiler
def test_columns_of_any_name_are_arguments_in_c(tmp_path):
    expression = odd_expression()
    X = points(3, d=len(ODD))
    np.testing.assert_allclose(compiled([expression], tmp_path)[0](X), expression(X), rtol=1e-9)


def test_columns_whose_names_are_one_to_python_are_told_apart():
    library = get_library("koza", 2)
    tokens = [library.index[name] for name in ("sub", "x1", "x2")]
    function = function_of(Expression(library, tokens, (), ["a", "\uff41"]).to_python())
    assert function(3.0, 1.0) == 2.0


@pytest.mark.parametrize("name", ["", "a b", "lambda", "np", "1a", "f(x): pass\ndef g", None])
def test_a_name_that_cannot_be_a_python_function_is_refused(name):
    with pytest.raises(ValueError, match="name="):
        Expression.from_text("x1", get_library("koza", 1)).to_python(name)


@pytest.mark.parametrize("name", ["", "a b", "double", "sin", "é", "M_PI", "_f", None])
def test_a_name_that_cannot_be_a_c_function_is_refused(name):
    with pytest.raises(ValueError, match="name="):
        Expression.from_text("x1", get_library("koza", 1)).to_c(name)


# ---- torch --------------------------------------------------------------------------------------


def test_the_constants_of_the_torch_module_can_be_trained_on():
    X = torch.linspace(-2.0, 2.0, 80, dtype=torch.float64)[:, None]
    y = 3.0 * torch.tanh(0.7 * X[:, 0]) - 0.5
    module = Expression.from_text("2.2*tanh(0.5*x1) + 0.1", get_library("physics", 1)).to_torch()
    assert [(name, p.dtype) for name, p in module.named_parameters()] == [("constants", torch.float64)]
    optimizer = torch.optim.LBFGS(module.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = ((module(X) - y) ** 2).mean()
        value.backward()
        return value

    optimizer.step(loss)
    np.testing.assert_allclose(module.expression.constants, [3.0, 0.7, -0.5], rtol=1e-4)
    np.testing.assert_allclose(module.expression(X.numpy()), module(X).detach().numpy(), rtol=1e-12)


def test_gradients_by_constants_and_inputs_are_those_of_differences():
    X = np.random.default_rng(0).uniform(0.2, 0.8, (5, 2))
    text = "1.5*x1**2.5/(x2 + 0.3) + exp(-0.4*x1) - arcsin(x2)*abs(x1 - 0.5) + log(x1)*cos(0.9*x2)"
    module = Expression.from_text(text, get_library("physics", 2)).to_torch()
    inputs = torch.tensor(X, requires_grad=True)

    def values(constants, inputs):
        return torch.func.functional_call(module, {"constants": constants}, (inputs,))

    assert torch.autograd.gradcheck(values, (module.constants, inputs))


def test_a_whole_exponent_gets_no_gradient_and_spoils_no_other():
    module = Expression.from_text("1.5*x1**5 + x1", get_library("physics", 1)).to_torch()
    X = torch.tensor([[-2.0], [1.0], [0.0]], dtype=torch.float64)
    module(X).sum().backward()
    assert module.constants.grad.tolist() == [-31.0, 0.0]


def test_the_torch_module_keeps_the_type_of_its_input_and_survives_pickling_and_its_state():
    module = Expression.from_text("2.5*x1 + sin(x2)", get_library("physics", 2)).to_torch()
    X = points(4, d=2)
    assert module(torch.tensor(X, dtype=torch.float32)).dtype == torch.float32
    assert module(torch.ones((3, 2), dtype=torch.int64)).dtype == torch.float64
    lighter = copy.deepcopy(module).to(torch.float32)
    assert lighter.constants.dtype == torch.float32
    again = pickle.loads(pickle.dumps(module))
    assert torch.equal(again(torch.tensor(X)), module(torch.tensor(X)))
    again.load_state_dict({"constants": torch.tensor([4.0])})
    assert str(again.expression) == "4*x1 + sin(x2)"
    constant = Expression.from_text("2.5", get_library("physics", 2)).to_torch()
    assert constant(torch.tensor(X)).tolist() == [2.5] * len(X)


def test_wrong_input_of_the_torch_module_is_named():
    module = Expression.from_text("x1*x2", get_library("physics", 2)).to_torch()
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        module(torch.ones(3))
    with pytest.raises(ValueError, match="X has 1 features; the expression uses feature 2"):
        module(torch.ones(3, 1))


def test_expressions_do_not_import_torch():
    code = "import sys, dgsr.expressions; print('torch' in sys.modules)"
    lean = "import sys, types; sys.modules['dgsr'] = m = types.ModuleType('dgsr'); m.__path__ = [{!r}]; "
    import dgsr

    script = lean.format(dgsr.__path__[0]) + code
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---- operators of the user's own ----------------------------------------------------------------


@pytest.fixture(scope="module")
def own():
    """Return a library with operators of a user's own, compiled where a test asks for it."""
    library = get_library("physics", 2)
    library = library.with_operator("gauss", lambda x: math.exp(-x * x), sympy=lambda x: sympy.exp(-(x**2)))
    library = library.with_operator(
        "logistic", lambda x: 1.0 / (1.0 + math.exp(-x)), sympy=lambda x: 1 / (1 + sympy.exp(-x))
    )
    return library.with_operator(
        "mean", lambda a, b: (a + b) * 0.5, sympy=lambda a, b: (a + b) / sympy.Integer(2)
    ).with_operator("bare", lambda x: 2.0 * x)


OWN_TEXTS = [
    "2*gauss(x1 - 0.5) + mean(x1, x2**2)", "mean(gauss(3), x1)", "gauss(1/x1)", "logistic(x1)",
    "mean(x1, 1/x2)", "logistic(logistic(x1) - gauss(x2))", "mean(2.5, -x1)", "gauss(0.5)*x1",
    "gauss(exp(x1))",
]  # fmt: skip


@pytest.mark.parametrize("text", OWN_TEXTS)
def test_an_operator_with_a_sympy_form_is_exported_by_it(text, own):
    expression = Expression.from_text(text, own)
    X = np.array([[a, b] for a in (0.3, -1.2, 0.0, 5.0, -900.0, np.inf, np.nan) for b in (0.7, 0.0)])
    everywhere = np.ones(len(X), dtype=bool)
    assert_same(expression, X, python_values(expression, X), everywhere)
    assert_same(expression, X, expression.numpy_function()(*X.T), everywhere)
    assert_same(expression, X, torch_values(expression, X), everywhere)


@needs_compiler
def test_an_operator_with_a_sympy_form_is_exported_to_c(tmp_path, own):
    expressions = [Expression.from_text(text, own) for text in OWN_TEXTS]
    X = np.array([[a, b] for a in (0.3, -1.2, 0.0, 5.0, -900.0, np.inf, np.nan) for b in (0.7, 0.0)])
    for expression, function in zip(expressions, compiled(expressions, tmp_path)):
        assert_same(expression, X, function(X), np.ones(len(X), dtype=bool))


@pytest.mark.parametrize("export", ["to_python", "to_jax", "to_c", "to_torch"])
def test_an_operator_without_sympy_form_is_named_with_the_mend(export, own):
    expression = Expression.from_text("1 + bare(x1)", own)
    with pytest.raises(ValueError, match=r"'bare'.*sympy="):
        getattr(expression, export)()
    assert getattr(Expression.from_text("1 + x1", own), export)()
    assert expression.numpy_function()(1.0, 0.0) == 3.0
    ElementTree.fromstring(expression.mathml)


@pytest.mark.parametrize("form", [sympy.erf, lambda x: x * sympy.Symbol("k"), lambda x: x * sympy.I])
def test_a_sympy_form_that_cannot_be_written_is_named(form):
    library = with_own(get_library("physics", 1), "odd", lambda x: x, sympy=form)
    expression = Expression.from_text("odd(x1)", library)
    for export in (expression.to_python, expression.to_c, expression.to_torch):
        with pytest.raises(ValueError, match="'odd' cannot be exported"):
            export()


# ---- LaTeX and MathML ---------------------------------------------------------------------------


def assert_well_formed(expression):
    latex = re.sub(r"\\.", "", expression.latex)  # escaped braces need not balance
    depth = np.cumsum([(c == "{") - (c == "}") for c in latex])
    assert (depth >= 0).all()
    assert depth[-1] == 0
    assert not set(latex) & set("%#&$~")
    root = ElementTree.fromstring(expression.mathml)
    assert root.tag == "{http://www.w3.org/1998/Math/MathML}math"
    assert expression.mathml.isascii()
    assert len(root) == 1
    return root


def test_latex_and_mathml_of_random_programs_are_well_formed():
    for expression in drawn(8, 25):
        assert_well_formed(expression)


def test_latex_and_mathml_of_any_names_are_well_formed():
    expression = odd_expression()
    root = assert_well_formed(expression)
    texts = "".join(root.itertext())
    for name in ("a b", '""" import os', "*/ int x; /*", "%", "Δt", "中"):
        assert name in texts


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x1", "x_{1}"),
        ("chord_length", "chord_{length}"),
        ("β", r"\beta"),
        ("λ_0", r"\lambda_{0}"),
        ("a b", r"\mathrm{a\ b}"),
        ("50%_up", r"\mathrm{50\%\_up}"),
        ("Δt", r"\mathrm{{\Delta}t}"),
        ("{", r"\mathrm{\{}"),
        ("x-1", r"\mathrm{x{-}1}"),
        ("a&b#$", r"\mathrm{a\&b\#\$}"),
    ],
)
def test_odd_names_are_escaped_in_latex(name, latex):
    assert Expression.from_text("x1", get_library("koza", 1)).with_feature_names([name]).latex == latex


@pytest.mark.parametrize("name", ["a<b", "a&b", "&pi;", "a\x00b", "\udc80", "<mi>"])
def test_odd_names_are_escaped_in_mathml(name):
    expression = Expression.from_text("2.5*x1", get_library("physics", 1)).with_feature_names([name])
    root = ElementTree.fromstring(expression.mathml)
    assert "".join(root.itertext()).endswith(re.sub("[\x00\udc80]", " ", name))


def test_constants_are_short_in_latex_and_mathml_and_whole_in_sympy():
    text = "1.23456789*x1 + 3.14159265358979*sqrt(x1 - 0.00000123456789)"
    expression = Expression.from_text(text, get_library("physics", 1))
    latex, texts = expression.latex, "".join(ElementTree.fromstring(expression.mathml).itertext())
    for written in (latex, texts):
        assert "1.2346" in written
        assert "1.23456" not in written
    assert r"1.2346 \cdot 10^{-6}" in latex
    assert sympy.Float(1.23456789) in expression.sympy.atoms(sympy.Float)


def test_shortening_makes_no_two_terms_equal():
    expression = Expression.from_text(
        "sqrt(x1 + 1.0000001) - sqrt(x1 + 1.0000002)", get_library("physics", 1)
    )
    assert expression.latex.count("sqrt") == 2


@pytest.mark.parametrize(
    "number",
    [
        0.1,
        np.int64(3),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(np.float64(0.1), marks=pytest.mark.slow),
    ],
)
def test_a_sympy_form_may_be_a_number(number):
    library = with_own(get_library("physics", 1), "same", lambda x: float(number), sympy=lambda x: number)
    expression = Expression(library, [library.index[name] for name in ("add", "same", "x1", "x1")])
    assert function_of(expression.to_python())(np.array([2.0])) == number + 2.0


def test_a_sympy_form_that_is_text_is_refused_and_not_executed(monkeypatch):
    monkeypatch.delenv("DGSR_EXECUTED", raising=False)
    text = "__import__('os').environ.__setitem__('DGSR_EXECUTED', '1')"
    library = with_own(get_library("physics", 1), "bump", lambda x: math.exp(-x * x), sympy=lambda x: text)
    expression = Expression(library, [library.index["bump"], library.index["x1"]])
    for export in (expression.to_python, expression.to_c, expression.to_torch):
        with pytest.raises(ValueError, match="'bump' cannot be exported by its sympy form"):
            export()
        assert "DGSR_EXECUTED" not in os.environ
