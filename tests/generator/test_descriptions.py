"""The descriptions of a table: what their numbers are, and what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from dgsr.generator.guide import descriptions
from dgsr.generator.guide.descriptions import (
    FREQUENCIES,
    MATCHED,
    MOST_COLUMNS,
    N_COLUMN,
    N_PAIR,
    N_TABLE,
    QUOTIENTS,
    REGRESSIONS,
    RESIDUALS,
    Descriptions,
    by_strength,
    describe,
)
from dgsr.generator.guide.functions import FUNCTIONS, ODD_PAIRS, ORDERED_PAIRS, SYMMETRIC_PAIRS, TARGETS
from searches import described, table, table_with_ties, tensors, wide_table

seeds = st.integers(0, 2**31)
tables = st.sampled_from([table, table_with_ties])

# What is described: targets, what regressions leave of them, and what the best function of a column and that
# of a pair leave, and quotients.
DESCRIBED = (
    *TARGETS,
    *(f"{REGRESSIONS[r][0]} without {REGRESSIONS[r][1]}" for r in RESIDUALS),
    *(f"{name} without the best column" for name in MATCHED),
    *(f"{name} without the best pair" for name in MATCHED),
    *QUOTIENTS,
)
OF_PAIRS = (*TARGETS[:3], *DESCRIBED[len(TARGETS) :])
PAIRS = (*SYMMETRIC_PAIRS, *ORDERED_PAIRS)
# Those that neither scale nor offset of y changes.
OF_Y = ("y", "rank y", "y without x", "y without the best column", "y without the best pair")


def at(names, kept=DESCRIBED):
    """Places of targets by their names, of those that are among what is described."""
    return [kept.index(name) for name in names if name in kept]


def correlations(given):
    """Correlations (C, function, target) of one table and (C, C, function, target) of pairs of columns."""
    n = len(FUNCTIONS) * len(DESCRIBED)
    pairs = given.pairs[0, :, :, : N_PAIR // 2].unflatten(-1, (-1, len(OF_PAIRS)))
    return given.columns[0, :, :n].unflatten(-1, (len(FUNCTIONS), -1)).numpy(), pairs.numpy()


def rest_of_columns(given):
    """What describes columns besides correlations and their logits, by its name."""
    n_functions = 2 * len(FUNCTIONS) * len(DESCRIBED)
    sizes = {
        "logits": n_functions // 2,
        "smoothness": len(DESCRIBED),
        "waves of y": len(FREQUENCIES),
        "waves of log|y|": len(FREQUENCIES),
        "coefficients": len(REGRESSIONS),
        "slopes": 3,
        "sizes of coefficients": len(REGRESSIONS),
        "facts": len(descriptions.FACTS),
    }
    parts = given.columns[0, :, n_functions // 2 :].split(list(sizes.values()), dim=-1)
    return dict(zip(sizes, (part.numpy() for part in parts), strict=True))


def without_logits(given):
    """All descriptions but the logits, which magnify rounding where a correlation is near 1."""
    columns = rest_of_columns(given)
    del columns["logits"]
    n, m = len(REGRESSIONS), len(TARGETS)
    explained, _, facts, strongest, _, counts = given.table[0].split([n, n, len(descriptions.FACTS), m, m, 3])
    of_table = [part.numpy() for part in (explained, facts, strongest, counts)]
    return [*of_table, *correlations(given), *columns.values()]


def assert_close(first, second, atol=2e-5):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


# ---- the same numbers by numpy ----------------------------------------------------------------


def standardised(values):
    """The same values with mean 0 and mean square 1, or zeros where they do not vary."""
    centred = np.asarray(values) - np.mean(values)
    size = np.sqrt(np.mean(centred**2))
    return centred / size if size > 1e-9 * np.abs(values).max() else np.zeros_like(centred)


def targets_of(y):
    return [y, np.log(np.abs(y)), 1.0 / y, y * y, np.sqrt(np.abs(y)), rankdata(y)]


def functions_of(x):
    return [
        *(x, x**2, x**3, 1.0 / x, x**-2, np.sqrt(np.abs(x)), np.log(np.abs(x)), np.exp(x), np.exp(-x)),
        *(np.sin(x), np.cos(x), np.tanh(x), np.abs(x), np.exp(-x * x), x**4, rankdata(x)),
    ]


def functions_of_pair(x, z):
    """By their names; those that are a constant, or have a pole everywhere, where both are one column."""
    values = {
        "x z": x * z, "x + z": x + z, "x^2 + z^2": x**2 + z**2, "log|x + z|": np.log(np.abs(x + z)),
        "log(x^2 + z^2)": np.log(x**2 + z**2), "1/(x + z)": 1.0 / (x + z), "exp(x z)": np.exp(x * z),
        "sqrt(x^2 + z^2)": np.hypot(x, z), "sin(x z)": np.sin(x * z), "cos(x z)": np.cos(x * z),
        "x^2 z": x * x * z, "x sin z": x * np.sin(z), "x cos z": x * np.cos(z),
        "x exp z": x * np.exp(z), "x exp -z": x * np.exp(-z), "x log|z|": x * np.log(np.abs(z)),
        "x^2/z": x * x / z, "x/z^2": x / z**2,
    }  # fmt: skip
    if x is z:
        constant = ("x - z", "1/(x - z)", "sin(x - z)", "log|x - z|", "x/z", "exp(x/z)")
        return values | dict.fromkeys(constant, np.zeros_like(x))
    return values | {
        "x - z": x - z, "1/(x - z)": 1.0 / (x - z), "sin(x - z)": np.sin(x - z),
        "log|x - z|": np.log(np.abs(x - z)), "x/z": x / z, "exp(x/z)": np.exp(x / z),
    }  # fmt: skip


def correlations_with(functions, targets):
    """Of each function with each target: 0 where one does not vary."""
    f, t = (np.stack([standardised(values) for values in given]) for given in (functions, targets))
    return f @ t.T / f.shape[1]


def what_the_best_leaves(target, functions):
    """The residual of the function that explains most of a target, and how much better it is than others."""
    shares = correlations_with(functions, [target])[:, 0]
    best = np.argmax(np.abs(shares))
    others = np.delete(np.abs(shares), best)
    return standardised(target) - shares[best] * standardised(functions[best]), (
        np.abs(shares[best]) - others.max()
    )


# ---- what the numbers are ---------------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [1, 3])
def test_descriptions_have_the_sizes_that_the_network_is_built_for(n_columns):
    given = described(*table(0, n_columns=n_columns))
    assert given.table.shape == (1, N_TABLE)
    assert given.columns.shape == (1, n_columns, N_COLUMN)
    assert given.pairs.shape == (1, n_columns, n_columns, N_PAIR)
    assert {part.dtype for part in given} == {torch.float32}


@settings(max_examples=20)
@given(seeds)
def test_the_descriptions_of_columns_are_correlations(seed):
    X, y = table(seed)
    found, _ = correlations(described(X, y))
    for c, x in enumerate(X.T):
        expected = correlations_with(functions_of(x), targets_of(y))
        np.testing.assert_allclose(found[c, :, : len(TARGETS)], expected, atol=1e-5)


@settings(max_examples=10)
@given(seeds)
def test_the_descriptions_of_pairs_are_correlations(seed):
    X, y = table(seed)
    _, found = correlations(described(X, y))
    columns = list(X.T)
    for i, j in np.ndindex(3, 3):
        for name, values in functions_of_pair(columns[i], columns[j]).items():
            # Functions near a pole have single values far above all others, in single precision.
            atol = 2e-3 if "/" in name or "log" in name else 2e-5
            theirs = correlations_with([values], targets_of(y)[:3])[0]
            np.testing.assert_allclose(found[i, j, PAIRS.index(name), :3], theirs, atol=atol, err_msg=name)


@settings(max_examples=20)
@given(seeds)
def test_what_regressions_and_the_best_functions_leave_over_is_described(seed):
    X, y = table(seed)
    columns, targets = list(X.T), dict(zip(TARGETS, targets_of(y), strict=True))
    of_columns = np.stack([functions_of(x) for x in columns])
    of_pairs = [
        values
        for i, x in enumerate(columns)
        for j, z in enumerate(columns)
        for name, values in functions_of_pair(x, z).items()
        if i <= j or name not in SYMMETRIC_PAIRS
    ]
    expected = {}
    for r in RESIDUALS:
        of_y, of_x = REGRESSIONS[r]
        design = np.stack([standardised(f) for f in of_columns[:, FUNCTIONS.index(of_x)]], axis=1)
        t = standardised(targets[of_y])
        expected[f"{of_y} without {of_x}"] = t - design @ np.linalg.lstsq(design, t, rcond=None)[0]
    for kind, functions in (("column", of_columns.reshape(-1, len(y))), ("pair", of_pairs)):
        for name in MATCHED:
            rest, lead = what_the_best_leaves(targets[name], functions)
            assume(lead > 1e-3)  # else rounding decides which one is the best
            expected[f"{name} without the best {kind}"] = rest
    found, found_of_pairs = correlations(described(X, y))
    for c, x in enumerate(columns):
        theirs = correlations_with(functions_of(x), expected.values())
        np.testing.assert_allclose(found[c][:, at(expected)], theirs, atol=2e-3)
    values = functions_of_pair(columns[0], columns[2])
    theirs = correlations_with([values[name] for name in PAIRS], expected.values())
    np.testing.assert_allclose(found_of_pairs[0, 2][:, at(expected, OF_PAIRS)], theirs, atol=5e-3)


LAWS_OF_PAIRS = {
    "x z": lambda a, b: 3.0 + 2.0 * a * b,
    "x/z": lambda a, b: 1.0 - b / a,
    "1/(x - z)": lambda a, b: 4.0 / (a - b) + 2.0,
    "sin(x - z)": lambda a, b: np.sin(a - b) + 7.0,
    "exp(x/z)": lambda a, b: np.exp(a / b) - 1.0,
}


@pytest.mark.parametrize("law", LAWS_OF_PAIRS.values(), ids=LAWS_OF_PAIRS)
@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0), (1, 2)])
def test_the_best_pair_leaves_nothing_over_of_a_function_of_it(law, first, second):
    X = 0.5 + np.abs(table(1, n_rows=60)[0])
    X[:, second] += 0.1 * np.sign(X[:, second] - X[:, first])  # away from the pole
    y = law(X[:, first], X[:, second])
    columns, pairs = correlations(described(X, y))
    left = "y without the best pair"
    assert (columns[..., DESCRIBED.index(left)] == 0.0).all()
    assert (pairs[..., OF_PAIRS.index(left)] == 0.0).all()
    assert np.abs(columns[..., DESCRIBED.index("y without the best column")]).max() > 0.1
    assert (np.abs(pairs[..., OF_PAIRS.index("y")]).max(axis=2) > 0.999).any()


def test_the_best_pair_leaves_over_what_else_is_in_the_law():
    X, _ = table(3, n_rows=200)
    y = 4.0 * X[:, 0] * X[:, 1] + np.cos(X[:, 2])
    columns, _ = correlations(described(X, y))
    of_last = columns[2, :, DESCRIBED.index("y without the best pair")]
    assert np.abs(of_last[FUNCTIONS.index("cos x")]) > 0.99
    assert np.abs(columns[2, :, DESCRIBED.index("y")]).max() < 0.3


powers = st.integers(-4, 4)


@settings(max_examples=20)
@example(136792, 0, 0, 1.0)
@given(seeds, powers, powers, st.sampled_from([1.0, -0.01, 1e5]))
def test_quotients_are_what_whole_powers_of_columns_leave_over(seed, first, third, scale):
    X, _ = table(seed, n_rows=300)
    rest = X[:, 1] + 9.0
    y = scale * X[:, 0] ** float(first) * rest * X[:, 2] ** float(third)
    given = described(X, y)
    slopes = rest_of_columns(given)["slopes"][:, 0]
    logarithms = np.log(np.abs(np.column_stack([X, y])))
    logarithms -= logarithms.mean(axis=0)
    expected = np.linalg.lstsq(logarithms[:, :3], logarithms[:, 3], rcond=None)[0]
    np.testing.assert_allclose(slopes, expected, atol=1e-3)
    # By chance the column between them explains some of its own sum; an exponent is then not near a number.
    assume(np.abs(expected - [first, 0.0, third]).max() < 0.07)
    # Of the square of y, powers of more than 4 stay where they are.
    squared = y**2
    for x, power in ((X[:, 0], first), (X[:, 2], third)):
        squared = squared / (x ** (2.0 * power) if abs(power) <= 2 else 1.0)
    expected = dict(zip(QUOTIENTS, (scale * rest, np.log(rest), squared), strict=True))
    found, found_of_pairs = correlations(given)
    for c, x in enumerate(X.T):
        theirs = correlations_with(functions_of(x), expected.values())
        np.testing.assert_allclose(found[c][:, at(expected)], theirs, atol=2e-4)
    theirs = correlations_with([X[:, 1] * X[:, 2], X[:, 1] - X[:, 2]], expected.values())
    places = [PAIRS.index("x z"), PAIRS.index("x - z")]
    np.testing.assert_allclose(found_of_pairs[1, 2][places][:, at(expected, OF_PAIRS)], theirs, atol=2e-4)
    # The law of the column between them is plain to see, which it is not in y.
    assert found[1, FUNCTIONS.index("x"), DESCRIBED.index("y / powers")] * scale > 0.0
    np.testing.assert_allclose(np.abs(found[1, FUNCTIONS.index("x"), at(["y / powers"])]), 1.0, atol=1e-5)


def test_a_law_of_the_textbook_kind_is_read_from_its_quotient():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 5.0, (100, 3))
    y = X[:, 0] ** 2 * (X[:, 1] + 3.0) / X[:, 2]
    found, _ = correlations(described(X, y))
    quotient, logarithm = (DESCRIBED.index(name) for name in QUOTIENTS[:2])
    assert found[1, FUNCTIONS.index("x"), quotient] == pytest.approx(1.0, abs=1e-5)
    expected = np.corrcoef(np.log(X[:, 1]), np.log(X[:, 1] + 3.0))[0, 1]
    assert found[1, FUNCTIONS.index("log|x|"), logarithm] == pytest.approx(expected, abs=1e-4)
    assert found[1, FUNCTIONS.index("x"), DESCRIBED.index("y")] < 0.6


def test_a_square_root_of_a_column_is_taken_out_of_the_square_of_y():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 5.0, (200, 2))
    y = -np.sqrt(X[:, 0] * (X[:, 1] + 2.0))
    found, _ = correlations(described(X, y))
    assert found[1, FUNCTIONS.index("x"), DESCRIBED.index("y^2 / powers")] == pytest.approx(1.0, abs=1e-5)
    assert np.abs(found[1, FUNCTIONS.index("x"), DESCRIBED.index("y / powers")]) < 0.9


def test_powers_that_are_not_whole_stay_in_the_quotient():
    rng = np.random.default_rng(2)
    X = rng.uniform(0.5, 5.0, (200, 1))
    y = X[:, 0] ** 1.3  # and its square is not either
    found, _ = correlations(described(X, y))
    expected = correlations_with(functions_of(X[:, 0]), [y, np.log(y), y**2])
    np.testing.assert_allclose(found[0][:, at(QUOTIENTS)], expected, atol=1e-4)


def smoothness(x, target):
    """1 minus half the mean square step from row to row in the order of x, of means over equal x."""
    means = np.array([target[x == value].mean() for value in np.sort(x)])
    return 1.0 - 0.5 * np.mean(np.diff(means) ** 2)


@settings(max_examples=20)
@given(tables, seeds)
def test_smoothness_is_that_of_the_targets_from_row_to_row(kind, seed):
    X, y = kind(seed)
    found = rest_of_columns(described(X, y))["smoothness"][:, : len(TARGETS)]
    targets = [standardised(target) for target in targets_of(y)]
    expected = [[smoothness(x, target) for target in targets] for x in X.T]
    np.testing.assert_allclose(found, expected, atol=1e-5)


# ---- what they do not depend on ---------------------------------------------------------------


@settings(max_examples=20)
@given(tables, seeds, st.integers(8, 60), st.integers(1, 4))
def test_the_order_of_the_rows_does_not_matter(kind, seed, n_rows, n_columns):
    X, y = kind(seed, n_rows, n_columns)
    order = np.random.default_rng(seed).permutation(n_rows)
    given, moved = described(X, y), described(X[order], y[order])
    # The rounding of a target is a thousand times larger beside what little is left over of it.
    assert_close(without_logits(given), without_logits(moved), 1e-3)


@settings(max_examples=20)
@given(seeds)
def test_the_order_of_the_rows_does_not_matter_in_tables_of_zeros_and_ones(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (30, 3)).astype(float), rng.integers(-1, 2, 30).astype(float)
    order = rng.permutation(30)
    given, moved = described(X, y), described(X[order], y[order])
    for ours, theirs in zip(correlations(given), correlations(moved), strict=True):
        # What regressions on the logarithms of zeros leave over is of rounding alone.
        np.testing.assert_allclose(ours[..., :3], theirs[..., :3], atol=2e-5)
    ours, theirs = (rest_of_columns(part)["smoothness"][:, : len(TARGETS)] for part in (given, moved))
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


@settings(max_examples=20)
@given(tables, seeds, st.permutations(range(4)))
def test_what_describes_columns_and_pairs_moves_with_the_columns(kind, seed, order):
    X, y = kind(seed, n_columns=4)
    given, moved = described(X, y), described(X[:, order], y)
    *of_table, columns, pairs = without_logits(given)[:6]
    *of_table_moved, columns_moved, pairs_moved = without_logits(moved)[:6]
    assert_close(of_table, of_table_moved)
    assert_close([columns[order], pairs[np.ix_(order, order)]], [columns_moved, pairs_moved])
    parts, parts_moved = rest_of_columns(given), rest_of_columns(moved)
    for name in parts.keys() - {"logits"}:
        np.testing.assert_allclose(parts[name][order], parts_moved[name], atol=2e-5, err_msg=name)


@settings(max_examples=10)
@given(tables, seeds)
def test_a_pair_and_its_reverse_differ_in_the_sign_of_odd_functions_alone(kind, seed):
    pairs = described(*kind(seed)).pairs[0].unflatten(-1, (2, len(PAIRS), -1))  # correlations and logits
    names = list(SYMMETRIC_PAIRS)
    odd = [names.index(name) for name in ODD_PAIRS]
    even = [names.index(name) for name in names if name not in ODD_PAIRS]
    mirrored = pairs.transpose(0, 1)
    off_diagonal = ~torch.eye(len(pairs), dtype=torch.bool)
    assert torch.equal(pairs[:, :, :, even], mirrored[:, :, :, even])
    assert torch.equal(pairs[:, :, :, odd][off_diagonal], -mirrored[:, :, :, odd][off_diagonal])
    assert pairs[:, :, :, odd].abs().max() > 0.01


@settings(max_examples=20)
@given(seeds)
def test_equal_values_have_equal_ranks(seed):
    X, y = table_with_ties(seed)
    found, _ = correlations(described(X, y))
    of_ranks = found[:, FUNCTIONS.index("rank x"), DESCRIBED.index("rank y")]
    np.testing.assert_allclose(of_ranks, [spearmanr(x, y).statistic for x in X.T], atol=1e-5)


@settings(max_examples=20)
@given(seeds, st.floats(0.01, 100.0), st.floats(-100.0, 100.0))
def test_what_describes_y_does_not_depend_on_its_scale_and_offset(seed, scale, offset):
    X, y = table(seed)
    given, other = described(X, y), described(X, scale * y + offset)
    columns, columns_other = correlations(given)[0], correlations(other)[0]
    pairs, pairs_other = correlations(given)[1], correlations(other)[1]
    assert_close([columns[..., at(OF_Y)]], [columns_other[..., at(OF_Y)]], 1e-4)
    of_pairs = at(OF_Y, OF_PAIRS)
    assert_close([pairs[..., of_pairs]], [pairs_other[..., of_pairs]], 1e-4)
    parts, parts_other = rest_of_columns(given), rest_of_columns(other)
    of_y = [number for number, (target, _) in enumerate(REGRESSIONS) if target == "y"]
    for name, chosen in (("smoothness", at(OF_Y)), ("waves of y", slice(None)), ("coefficients", of_y)):
        ours, theirs = parts[name][:, chosen], parts_other[name][:, chosen]
        np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(given.table[0, of_y], other.table[0, of_y], atol=1e-4)
    # Those that mark the hypothesis of no offset do depend on it.
    if abs(offset) > scale:
        assert np.abs(columns[..., 1] - columns_other[..., 1]).max() > 1e-3


@settings(max_examples=20)
@given(seeds, st.floats(-4.0, 4.0))
def test_nothing_that_describes_columns_and_pairs_depends_on_the_scale_of_y(seed, magnitude):
    X, y = table(seed)
    given, other = described(X, y), described(X, 10.0**magnitude * y)
    n_of_table = 4
    assert_close(without_logits(given)[n_of_table:], without_logits(other)[n_of_table:], 2e-4)


# ---- tables of any kind -----------------------------------------------------------------------

X3, Y3 = table(7)
NORMAL = np.random.default_rng(0).normal(size=20)
WHOLE = np.random.default_rng(1).integers(-3, 4, (30, 2)).astype(float)
EXTREME = {
    "constant columns": (np.full((20, 2), 3.0), NORMAL),
    "zeros": (np.zeros((20, 2)), NORMAL),
    "small columns": (1e-300 * X3, Y3),
    "large columns": (1e300 * X3 / 3.0, Y3),
    "the largest columns": (1.7e308 * (X3 / np.abs(X3).max()), Y3),
    "the smallest columns": (5e-324 * np.round(X3), Y3),
    "both sizes": (X3 * [1e-300, 1.0, 1e300], Y3),
    "a small y": (X3, 1e-300 * Y3),
    "a large y": (X3, 1e300 * Y3 / np.abs(Y3).max()),
    "the largest y": (X3, 1.7e308 * (Y3 / np.abs(Y3).max())),
    "a constant y": (X3, np.full(len(Y3), 2.0)),
    "y is zero": (X3, np.zeros(len(Y3))),
    "one row": (X3[:1], Y3[:1]),
    "one row twice": (X3[[0, 0]], Y3[[0, 0]]),
    "two rows": (X3[:2], Y3[:2]),
    "three rows": (X3[:3], Y3[:3]),
    "whole columns and a y with ties": (WHOLE, WHOLE[:, 0] % 2.0),
    "y is a column": (X3, X3[:, 1]),
    "y is a product of powers": (X3, X3[:, 0] ** 4 / X3[:, 1] ** 3),
    "equal columns": (X3[:, [0, 0, 0]], Y3),
    "one column": (X3[:, :1], Y3),
}


@pytest.mark.parametrize(("X", "y"), EXTREME.values(), ids=EXTREME)
def test_descriptions_are_finite_and_leave_the_data_as_they_are(X, y):
    before = X.copy(), y.copy()
    given = described(X, y)
    assert all(torch.isfinite(part).all() for part in given)
    columns, pairs = correlations(given)
    assert max(np.abs(columns).max(), np.abs(pairs).max()) < 1.001
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_each_table_is_described_alone_as_beside_others():
    many = [table(seed) for seed in range(3)]
    X, y = (torch.from_numpy(np.stack(arrays)) for arrays in zip(*many))
    together = describe(X, y)
    for number, alone in enumerate(many):
        of_one = Descriptions(*(part[number : number + 1] for part in together))
        assert_close(without_logits(of_one), without_logits(described(*alone)))


@pytest.mark.parametrize("kind", [table, table_with_ties])
def test_how_the_numbers_lie_in_memory_does_not_matter(kind):
    X, y = kind(0)
    expected = described(X, y)
    moved = torch.from_numpy(np.asfortranarray(np.stack([X, X])))
    repeated = torch.from_numpy(np.asfortranarray(np.stack([y, y])))
    assert not repeated.is_contiguous()
    for part, theirs in zip(describe(moved, repeated), expected, strict=True):
        torch.testing.assert_close(part[1], theirs[0], atol=2e-4, rtol=1e-4)


def test_a_column_that_does_not_vary_correlates_with_nothing():
    X, y = table(0)
    X[:, 1] = 2.5
    columns, _ = correlations(described(X, y))
    assert (columns[1] == 0.0).all()
    assert np.abs(columns[0]).max() > 0.2


# ---- wide tables ------------------------------------------------------------------------------


def test_the_columns_that_matter_are_among_the_strongest():
    X, y = wide_table()
    order = by_strength(*tensors(X, y))
    assert sorted(order.tolist()) == list(range(100))
    assert set(order[:2].tolist()) == {42, 99}
    assert 11 in order[:MOST_COLUMNS]
    assert MOST_COLUMNS < 100


@settings(max_examples=5)
@given(seeds, st.sampled_from([5, MOST_COLUMNS, MOST_COLUMNS + 1, 60]))
def test_columns_are_as_strong_as_their_best_function(seed, n_columns):
    X, y = table(seed, n_columns=n_columns)
    order = by_strength(*tensors(X, y)).numpy()
    strength = np.array([np.abs(correlations_with(functions_of(x), targets_of(y))).max() for x in X.T])
    assert (np.diff(strength[order]) < 1e-5).all()


def test_of_equally_strong_columns_the_first_comes_first():
    _, y = table(0)
    assert by_strength(*tensors(np.ones((len(y), 60)), y)).tolist() == list(range(60))


def test_a_zero_counts_in_a_logarithm_as_the_least_size_that_is_none():
    X = np.concatenate([[0.0], np.geomspace(1e-3, 10.0, 29)])[:, None]
    slopes = rest_of_columns(described(X, X[:, 0] ** 2))["slopes"][0, 0]
    assert slopes == pytest.approx(2.0, abs=1e-3)
    zeros = described(np.zeros((8, 1)), np.arange(8.0))
    assert all(bool(part.isfinite().all()) for part in zeros)
