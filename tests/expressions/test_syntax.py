"""The grammar: what is read, what is refused, and that values survive every translation."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dgsr.expressions import Expression, get_library
from dgsr.expressions.exports.symbolic import from_sympy, to_sympy
from dgsr.expressions.programs.library import library_of
from dgsr.expressions.programs.translation import from_program, to_program
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.evaluation import evaluate, evaluate_strictly
from dgsr.expressions.trees.syntax import parse, to_text
from dgsr.expressions.trees.trees import FUNCTIONS, MAX_LEVELS, leaves

VARIABLES = ("x1", "x2")
POINT = {"x1": 0.7, "x2": 1.9}

leaf = st.one_of(
    st.sampled_from(VARIABLES),
    st.integers(-9, 9),
    st.fractions(-5, 5, max_denominator=12),
    st.floats(-100, 100, allow_subnormal=False),
)
rational_leaf = st.one_of(
    st.sampled_from(VARIABLES), st.integers(-9, 9), st.fractions(-5, 5, max_denominator=12)
)


def _branches(children, unary, binary):
    return st.one_of(
        st.tuples(st.sampled_from(unary), children), st.tuples(st.sampled_from(binary), children, children)
    )


trees = st.recursive(
    leaf, lambda c: _branches(c, ("neg", *FUNCTIONS), ("add", "sub", "mul", "div", "pow")), max_leaves=8
)
rational_trees = st.recursive(
    rational_leaf, lambda c: _branches(c, ("neg", "square"), ("add", "sub", "mul", "div")), max_leaves=12
)
koza_trees = st.recursive(
    st.one_of(st.sampled_from(VARIABLES), st.integers(-4, 4)),
    lambda c: _branches(c, ("neg", "exp", "log", "sin", "cos", "tan", "sqrt"), ("add", "sub", "mul", "div")),
    max_leaves=6,
)
physics_trees = st.recursive(
    st.one_of(st.sampled_from(VARIABLES), st.integers(-4, 4)),
    lambda c: st.one_of(
        _branches(c, ("neg", "abs", *FUNCTIONS), ("add", "sub", "mul", "div", "pow")),
        st.tuples(st.just("pow"), c, st.sampled_from([-3, -1, Fraction(-1, 2), Fraction(1, 2), 1, 2, 3, 4])),
    ).filter(lambda tree: "arctan" not in str(tree)),
    max_leaves=6,
)


def exactly(tree):
    """Evaluate a rational tree in fractions; None where it divides by zero."""
    point = {"x1": Fraction(7, 10), "x2": Fraction(-19, 3)}
    if isinstance(tree, str):
        return point[tree]
    if not isinstance(tree, tuple):
        return Fraction(tree)
    values = [exactly(child) for child in tree[1:]]
    if any(value is None for value in values):
        return None
    name = tree[0]
    if name == "div":
        return None if values[1] == 0 else values[0] / values[1]
    if name == "pow":
        return None if values[0] == 0 and values[1] <= 0 else values[0] ** values[1]
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "neg": lambda a: -a,
        "square": lambda a: a * a,
    }[name](*values)


def precisely(tree, digits=50):
    """Evaluate with many digits; None where undefined."""
    with mpmath.workdps(digits):
        try:
            return evaluate(tree, {name: mpmath.mpf(value) for name, value in POINT.items()}, mpmath.mp)
        except ArithmeticError:
            return None


UNDECIDED = "undecided"
COSINE_OF_1E175 = ("cos", ("exp", ("exp", ("add", 6, ("sub", "x1", "x1")))))


# Functions that have an edge or a pole at 0.
SINGULAR = ("div", "pow", "log", "sqrt", "cot")


def surely(tree):
    """Evaluate with as many digits as the value needs; None where undefined.

    The sine of 1e119 has no correct digit in a computation of 50. So the digits are doubled until the value
    stays the same twice. A tree is UNDECIDED where it never does, or where a part that is 0 comes out as the
    rounding of the computation, and something is divided by it, or its logarithm or root is taken.
    """
    if _takes_rounding_for_a_number(tree):
        return UNDECIDED
    n_same, before = 0, precisely(tree, 50)
    for digits in (100, 200, 400, 800, 1600, 3200):
        value = precisely(tree, digits)
        if value is None or before is None:
            is_same = value is before
        else:
            with mpmath.workdps(digits):
                is_same = abs(value - before) <= 1e-30 * (1 + abs(value))
        n_same, before = n_same + 1 if is_same else 0, value
        if n_same == 2:
            return value
    return UNDECIDED


def _takes_rounding_for_a_number(tree):
    if not isinstance(tree, tuple):
        return False
    at_risk = tree[1:] if tree[0] in SINGULAR else ()
    return any(map(_is_rounding_of_0, at_risk)) or any(map(_takes_rounding_for_a_number, tree[1:]))


def _is_rounding_of_0(tree):
    """Whether a part is not 0, but so small that it is smaller still when it has more digits."""
    few, many = precisely(tree, 50), precisely(tree, 100)
    if few is None or many is None or few == many == 0:
        return False
    return abs(many) <= 1e-30 * abs(few) or (few == 0 and abs(many) < 1e-60)


def assert_close(a, b, tolerance=1e-25):
    """Close, or both undefined, unless the reference cannot know one of them."""
    if UNDECIDED in (a, b):
        return
    assert (a is None) == (b is None)
    if a is not None:
        with mpmath.workdps(50):
            assert abs(a - b) <= tolerance * (1 + abs(b))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x1 + 2*x2", ("add", "x1", ("mul", 2, "x2"))),
        ("a-b-c", ("sub", ("sub", "a", "b"), "c")),
        ("a/b*c", ("mul", ("div", "a", "b"), "c")),
        ("a**b**c", ("pow", "a", ("pow", "b", "c"))),
        ("a^2", ("pow", "a", 2)),
        ("-x**2", ("neg", ("pow", "x", 2))),
        ("x**-y*z", ("mul", ("pow", "x", ("neg", "y")), "z")),
        ("-2", -2),
        ("(-2)**2", ("pow", -2, 2)),
        ("0.5", Fraction(1, 2)),
        ("1e-3", Fraction(1, 1000)),
        ("2.50E1", 25),
        (".5", Fraction(1, 2)),
        ("ln(x)+asin(y)", ("add", ("log", "x"), ("arcsin", "y"))),
        ("2*pi", ("mul", 2, ("pi",))),
        (" sin ( x ) ", ("sin", "x")),
        ("+x", "x"),
    ],
)
def test_parse_follows_the_usual_precedence(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "position 0"),
        ("x1 +", "position 4"),
        ("(x1", "close the '\\(' of position 0"),
        ("x1)", "position 2, '\\)'"),
        ("x1 x2", "position 3, 'x2'"),
        ("2x1", "position 1, 'x1'"),
        ("sin", "in parentheses"),
        ("foo(x1)", "'foo': not a function"),
        ("__import__(os)", "position 0, '__import__'"),
        ("x1.real", "position 2"),
        ("x1; x2", "position 2, ';'"),
        ("1e999", "exponents up to"),
        ("9" * 60, "digits"),
        ("sin()", "position 4"),
        ("x1[0]", "position 2"),
        ("x1, x2", "position 2, ','"),
        ("sin(x1, x2)", "position 6, ','"),
        (",", "position 0"),
    ],
)
def test_parse_names_position_and_text_of_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["(" * 3000, "-" * 5000 + "x", "x+" * 3000 + "x", "x**" * 5000 + "x", "exp(" * 3000, "x" + " " * 30_000],
)
def test_too_deep_or_too_long_a_text_is_a_value_error(text):
    with pytest.raises(ValueError, match="shorten"):
        parse(text)


def test_the_deepest_text_allowed_can_be_evaluated_and_written():
    tree = parse("+".join(["x"] * (MAX_LEVELS - 1)))
    assert evaluate(tree, {"x": 1.0}) == MAX_LEVELS - 1
    assert parse(to_text(tree)) == tree


@pytest.mark.parametrize("link", [["sin"], ["add", "const", "sin"], ["div", "x2", "add", "x1"]], ids=" ".join)
def test_the_deepest_program_allowed_can_be_shown_in_every_way(link):
    library = get_library("koza-const", 2)
    n_links = (MAX_LEVELS - 1) // sum(library.tokens[library.index[name]].arity > 0 for name in link)
    tokens = [library.index[name] for name in [*link * n_links, "x1"]]
    deepest = Expression(library, tokens, np.linspace(1.1, 2.2, n_links))
    assert str(deepest.sympy)
    shown = (
        deepest.text,
        deepest.latex,
        deepest.mathml,
        deepest.to_python(),
        deepest.to_c(),
        deepest.to_jax(),
    )
    assert all(shown)
    with pytest.raises(ValueError, match="over 130 levels deep"):
        Expression(library, [library.index["sin"]] * 2 + tokens, deepest.constants)


def test_a_name_that_is_not_among_the_variables_is_refused():
    assert parse("x1", ["x1"]) == "x1"
    with pytest.raises(ValueError, match="'x2': not a variable; the variables are x1"):
        parse("x1*x2", ["x1"])


def test_names_of_constants_and_functions_can_be_variables():
    names = ["I", "E", "pi", "lambda", "beta", "exp"]
    assert parse("I*E+`pi`*pi", names) == ("add", ("mul", "I", "E"), ("mul", "pi", ("pi",)))
    assert parse("exp*exp(lambda)", names) == ("mul", "exp", ("exp", "lambda"))
    assert to_sympy(parse("I*E", names)).free_symbols == {sympy.Symbol("I"), sympy.Symbol("E")}


@given(rational_trees)
def test_text_reads_back_to_the_same_value_exactly(tree):
    assert exactly(parse(to_text(tree))) == exactly(tree)


@example(("sin", ("cot", ("mul", "x1", ("mul", 3, 2.330634113873649e-120)))))  # a sine of 1e119
@example(("cos", ("exp", ("mul", 100, ("mul", "x1", Fraction(19, 3))))))
@example(("tan", ("div", ("div", "x2", 7), 1e-90)))
@example(("cot", ("mul", 1e90, ("mul", Fraction(1, 3), ("pi",)))))
@example(("exp", ("mul", 1e90, ("mul", -1e-90, ("sin", "x1")))))
@example(("log", ("sub", ("square", ("sqrt", 2)), 2)))  # undecided, as is the next
@example(("tanh", ("div", 1, ("sub", ("square", ("sqrt", 2)), 2))))
@given(trees)
def test_text_reads_back_to_the_same_value_with_any_function(tree):
    # A float is written as the shortest decimal, which differs from it by up to 1e-16.
    tree = _decimals(tree)
    assert_close(surely(parse(to_text(tree))), surely(tree))


def _decimals(tree):
    if isinstance(tree, tuple):
        return (tree[0], *map(_decimals, tree[1:]))
    return Fraction(repr(tree)) if isinstance(tree, float) else tree


@given(trees)
@example(("neg", ("neg", ("mul", 0, "x1"))))
def test_writing_what_was_read_changes_nothing(tree):
    text = to_text(parse(to_text(tree)))
    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["a + b + c", "a - (b - c)", "a/(b*c)", "a*b/c", "-a*b", "(a + b)**2", "2**(-x)", "a*(-b)", "-(a + b)"],
)
def test_text_has_parentheses_only_where_they_are_needed(text):
    assert to_text(parse(text)) == text


@example(("arcsin", ("tanh", ("add", -1, -18.0))))  # tanh(-19) is -1 to 16 digits, and its arcsine to 8
@given(trees)
def test_float64_values_equal_those_of_50_digits(tree):
    precise = precisely(tree)
    value = evaluate(tree, POINT)
    if precise is not None and np.isfinite(value) and _is_well_conditioned(tree):
        assert math.isclose(value, precise, rel_tol=1e-9, abs_tol=1e-9)


def _is_well_conditioned(tree):
    """Whether every part stays near 1 in size, so that rounding is not magnified."""
    if not isinstance(tree, tuple):
        return 1e-3 < abs(precisely(tree)) < 100
    value = precisely(tree)
    if tree[0] in ("arcsin", "arccos") and abs(precisely(tree[1]) or 0.0) > 0.999:
        return False
    return value is not None and 1e-3 < abs(value) < 100 and all(map(_is_well_conditioned, tree[1:]))


@settings(max_examples=60, deadline=None)
@example(COSINE_OF_1E175)
@given(koza_trees)
def test_sympy_has_the_same_value(tree):
    value = surely(tree)
    if value not in (None, UNDECIDED):
        expression = to_sympy(tree).subs({name: sympy.Rational(v) for name, v in POINT.items()})
        assert_close(mpmath.mpf(str(sympy.N(expression, 40, maxn=3200))), value, 1e-15)


@settings(max_examples=60, deadline=None)
@example(COSINE_OF_1E175)
@given(koza_trees)
def test_a_tree_comes_back_from_sympy_with_its_value(tree):
    value = surely(tree)
    if value is not None:
        assert_close(surely(from_sympy(to_sympy(tree))), value)


def _largest_part(tree):
    parts = [precisely(tree), *map(_largest_part, tree[1:] if isinstance(tree, tuple) else ())]
    return max(abs(part) for part in parts if part is not None)


@given(koza_trees, st.sampled_from(["koza", "koza-const"]))
@example(("sin", ("exp", ("exp", 3))), "koza-const")
def test_a_tree_comes_back_from_a_program_with_its_value(tree, name):
    library = get_library(name, 2)
    value = precisely(tree)
    if library.has_constants and _has_undefined_number(tree):
        with pytest.raises(ValueError, match="not finite"):
            to_program(tree, library)
        return
    tokens, constants = to_program(tree, library)
    back = precisely(from_program(library, tokens, constants))
    if value is not None and back is not None:
        # The constants of a program are floats, and a sine magnifies the rounding of its argument.
        rounding = max(1e-8, 1e-14 * _largest_part(tree))
        assert_close(back, value, rounding if library.has_constants else 1e-25)


@given(physics_trees)
def test_a_tree_comes_back_from_a_program_of_physics_with_its_value(tree):
    library = get_library("physics", 2)
    if _has_undefined_number(tree):
        with pytest.raises(ValueError, match="not finite"):
            to_program(tree, library)
        return
    value = precisely(tree)
    back = from_program(library, *to_program(tree, library))
    # The numbers of a program are floats.
    if value is not None and _is_well_conditioned(tree) and precisely(back) is not None:
        assert_close(precisely(back), value, 1e-8)
        assert_close(precisely(tidy(back)), precisely(back), 1e-10)


@pytest.mark.parametrize(
    ("text", "program", "printed"),
    [
        ("x1**2", "square x1", "x1**2"),
        ("x1^3", "cube x1", "x1**3"),
        ("x1**4", "pow x1 4.0", "x1**4"),
        ("x1**-2", "pow x1 -2.0", "1/x1**2"),
        ("x1**0.5", "sqrt x1", "sqrt(x1)"),
        ("x1**(1/2)", "sqrt x1", "sqrt(x1)"),
        ("x1**-0.5", "inv sqrt x1", "1/sqrt(x1)"),
        ("x1**2.5", "pow x1 2.5", "x1**2.5"),
        ("x1**1", "x1", "x1"),
        ("1/sin(x1)", "inv sin x1", "1/sin(x1)"),
        ("x1**-1", "inv x1", "1/x1"),
        ("-x1", "neg x1", "-x1"),
        ("x1**x2", "pow x1 x2", "x1**x2"),
        ("2/x1", "div 2.0 x1", "2/x1"),
        ("asin(x1) + abs(x2)", "add arcsin x1 abs x2", "asin(x1) + abs(x2)"),
    ],
)
def test_a_program_uses_the_tokens_its_library_has(text, program, printed):
    library = get_library("physics", 2)
    tokens, constants = to_program(parse(text), library)
    values = iter(constants)
    names = [library.tokens[token].name for token in tokens]
    assert " ".join(str(next(values)) if name == "const" else name for name in names) == program
    assert to_text(tidy(from_program(library, tokens, constants))) == printed


@pytest.mark.parametrize("library", [get_library("koza-const", 1), library_of(["+", "*"])])
def test_a_high_power_has_values_for_negative_numbers_without_the_operator(library):
    expression = Expression.from_text("x1**27", library)
    assert expression.text == "x1**27"
    assert expression([[-1.1]]) == pytest.approx(-(1.1**27))


def _has_undefined_number(tree):
    """Whether a part without variables has no finite float64 value."""
    if isinstance(tree, str):
        return False
    if all(not isinstance(leaf, str) for leaf in leaves(tree)):
        return not np.isfinite(evaluate_strictly(tree, {}))
    return any(map(_has_undefined_number, tree[1:]))


@example(COSINE_OF_1E175)
@given(koza_trees)
def test_tidy_keeps_the_value(tree):
    value = surely(tree)
    if value is not None:
        assert_close(surely(tidy(tree)), value)


@given(rational_trees)
def test_tidy_keeps_the_value_exactly(tree):
    value = exactly(tree)
    if value is not None:
        assert exactly(tidy(tree)) == value


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("(x1+x1)/x1*x2", "2*x2"),
        ("x1*x1*x1", "x1**3"),
        ("x1-x1-x2", "-x2"),
        ("x2/((x1+x1+x1)/(x1+x1))", "2*x2/3"),
        ("exp(0.5*log(x1))", "sqrt(x1)"),
        ("exp(2*log(x1))", "exp(2*log(x1))"),
        ("sqrt(x1*x1*x1)", "x1**1.5"),
        ("sqrt(x1**2)", "sqrt(x1**2)"),
        ("sqrt(x1**2*x2)", "sqrt(x1**2*x2)"),
        ("x1/(x2-x2)", "x1/0"),
    ],
)
def test_tidy_collects_like_terms_and_factors(text, tidied):
    assert to_text(tidy(parse(text))) == tidied


def test_undefined_values_raise_with_digits_and_are_silent_in_arrays():
    for text in ("log(-x)", "sqrt(-x)", "1/(x-x)", "log(x-x)", "exp(exp(exp(exp(9*x))))", "(-x)**0.5"):
        with pytest.raises(ArithmeticError):
            evaluate(parse(text), {"x": mpmath.mpf(1)}, mpmath.mp)
        assert not np.isfinite(evaluate(parse(text), {"x": np.ones(2)})).any()


@pytest.mark.parametrize(
    "text",
    ["10**10**10", "9**9**9**9", "x*9**9**9**9", "exp(exp(exp(9.5)))", "exp(-exp(exp(exp(9.5))))",
     "tan(sinh(cosh(sinh(9))))", "exp(exp(exp(log(9)*9)*log(9))*log(9))", "1e300*1e300 + x", "1e400/x"],
)  # fmt: skip
def test_a_number_beyond_float64_is_nan_in_sympy_as_in_the_evaluator(text):
    assert to_sympy(parse(text)) is sympy.nan


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("(3*x)**9000000000", "(3*x)**9000000000"),
        ("exp(9000000000*log(9) + x)", "exp(x + 9000000000*log(9))"),
        ("((2*x)**3000)**3000*x", "x*((2*x)**3000)**3000"),
        ("9**(x - 9000000000)*9**(-x)", "9**(x - 9000000000)/9**x"),
        ("(1 - 1e-7)**9000000", "0.406569641637"),
    ],
)
def test_powers_of_many_digits_stay_as_they_are_or_become_floats(text, written):
    made = to_sympy(parse(text))
    assert str(made).startswith(written)
    assert to_text(from_sympy(made))


@pytest.mark.parametrize(
    ("text", "library", "message"),
    [
        ("abs(x1)", "koza", "abs\\(x1\\)"),
        ("3.39*x1", "koza", "3.39.*koza-const"),
        ("pi*x1", "koza", "'pi'.*koza-const"),
        ("sqrt(x1)", "synth", "exp and log"),
        ("sin(x1)", "synth", "sin\\(x1\\)"),
        ("x1*x3", "koza", "x3.*x1 to x2"),
        ("x1+1/0", "koza-const", "not finite"),
    ],
)
def test_what_a_library_cannot_write_is_named(text, library, message):
    with pytest.raises(ValueError, match=message):
        to_program(parse(text), get_library(library, 2))


def test_what_a_library_cannot_write_is_named_by_the_columns():
    with pytest.raises(ValueError, match=r"'abs\(`a b` - 2\)' cannot be written"):
        Expression.from_text("abs(`a b` - 2)*mass", get_library("koza", 2), np.array(["mass", "a b"]))


@pytest.mark.parametrize(
    "text", ["1e400*x1", "x1 + 1e400", "-1e400", "x1**1e400", "1/(1 + 1/0)", "exp(-1/0)"]
)
@pytest.mark.parametrize("library", ["koza-const", "physics"])
def test_a_number_without_finite_value_is_refused_like_in_the_evaluator(text, library):
    with pytest.raises(ValueError, match="not finite"):
        to_program(parse(text), get_library(library, 2))


def test_a_number_beyond_float64_is_refused_without_constants_too():
    with pytest.raises(ValueError, match="p/q up to 20"):
        to_program(parse("1e400*x1"), get_library("koza", 2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tan(" * 30 + "x1" + ")" * 30, "over 2000 tokens"),
        ("sinh(" * 30 + "x1" + ")" * 30, "over 2000 tokens"),
        ("(" * 120 + "x1" + ")**7" * 120, "over 130 levels"),
        ("(" * 120 + "x1" + ")**x2" * 120, "over 130 levels"),
        ("(" * 4 + "x1*x2" + ")**20" * 4, "over 2000 tokens"),
    ],
)
def test_what_becomes_too_large_a_program_is_refused(text, message):
    with pytest.raises(ValueError, match=f"too large: its program is {message}"):
        to_program(parse(text), get_library("koza", 2))


def test_multiples_within_multiples_are_written_once():
    tokens, _ = to_program(parse("2*(x1 + x2*" * 40 + "x1" + ")" * 40), get_library("koza", 2))
    assert len(tokens) < 480


def test_too_deep_a_program_is_refused():
    library = get_library("koza", 1)
    tokens = np.array([library.index["sin"]] * 5000 + [library.index["x1"]])
    with pytest.raises(ValueError, match="over 130 levels"):
        from_program(library, tokens, np.empty(0))


pieces = st.sampled_from(
    [*FUNCTIONS, "x1", "x2", "x3", "1e400", "9", "20", "0.5", "9" * 60, "1.", "\u0663", "nan", "_", "\x00",
     "\ud800", "(", "(", "(", ")", ")", ")", "+", "-", "*", "/", "**", "^", ",", " ", "\n", ".", "e", "[",
     "import os"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.lists(pieces, max_size=40).map("".join), st.text(max_size=40)),
    st.sampled_from(["koza", "koza-const", "physics", "synth"]),
)
def test_any_text_is_a_program_or_a_value_error(text, library):
    try:
        tokens, _ = to_program(parse(text, VARIABLES), get_library(library, 2))
    except ValueError:
        return
    assert len(tokens) > 0


def test_integers_without_constants_are_sums_of_x1_over_x1():
    library = get_library("koza", 1)
    tokens, constants = to_program(2, library)
    assert [library.tokens[token].name for token in tokens] == ["div", "add", "x1", "x1", "x1"]
    assert len(constants) == 0


@pytest.mark.parametrize("names", [["add", "x1"], ["x1", "x1"], [], ["sin"]])
def test_an_incomplete_program_is_refused(names):
    library = get_library("koza", 1)
    with pytest.raises(ValueError, match="tokens="):
        from_program(library, np.array([library.index[name] for name in names], dtype=int), np.empty(0))


NAMES = st.text(max_size=8) | st.sampled_from(["pi", "sin", "1", "a`b", "x 1", ""])


@given(names=st.tuples(NAMES, NAMES))
@example(names=["m/s^2", "a-b"])
@example(names=["lambda", "E"])
@example(names=["\\n", "\n"])
@example(names=["+", "("])
@example(names=["x2", "x1"])
def test_any_name_of_a_column_is_read_as_it_was_printed(names):
    assume(names[0] != names[1])
    library = get_library("physics", 2)
    expression = Expression.from_text("x1*sin(x2) - 2.5*x1/(x2 + pi)", library).with_feature_names(names)
    assert expression.text.isprintable()
    again = Expression.from_text(expression.text, library, names)
    assert again.feature_names == tuple(names)
    np.testing.assert_array_equal(again.tokens, expression.tokens)
    assert again.text == expression.text


def test_names_are_quoted_where_they_could_be_read_otherwise():
    library = get_library("physics", 2)
    expression = Expression.from_text("x1*sin(x2)", library).with_feature_names(["m/s^2", "sin"])
    assert expression.text == "`m/s^2`*sin(`sin`)"
    with pytest.raises(ValueError, match=r"'`m`': not a variable; the variables are `m/s\^2`, `sin`"):
        Expression.from_text("`m` + 1", library, ["m/s^2", "sin"])
    with pytest.raises(ValueError, match="position 0, '`'"):
        Expression.from_text("`m", library, ["m/s^2", "sin"])
