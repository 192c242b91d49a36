"""The guide: what the descriptions of a table say, and the probabilities that are read from them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from dgsr.evolution import random_population
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import get_library
from dgsr.generator.checkpoints import WEIGHTS, header_of, load_generator, save_generator
from dgsr.generator.config import GUIDE_WIDTH, GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.generator.guide import descriptions
from dgsr.generator.guide.descriptions import (
    FREQUENCIES,
    FUNCTIONS,
    MATCHED,
    MOST_COLUMNS,
    N_COLUMN,
    N_PAIR,
    N_TABLE,
    ORDERED_PAIRS,
    REGRESSIONS,
    RESIDUALS,
    SYMMETRIC_PAIRS,
    TARGETS,
    Descriptions,
    describe,
    describe_strongest,
)
from dgsr.generator.guide.network import Guide
from dgsr.kernels.pair_counts import pair_counts
from dgsr.kernels.random import new_state

torch.set_num_threads(1)

TINY = GeneratorConfig(
    encoder_width=16, encoder_heads=2, encoder_layers=1, n_inducing=4, n_latents=2, tree_embedding=4,
    decoder_width=16, decoder_heads=2, decoder_layers=1, max_length=12, max_rows=60,
    guide_width=16, guide_heads=2, guide_layers=2,
)  # fmt: skip
NO_GUIDE = replace(TINY, guide_width=0)
LIMITS = Constraints(max_length=12)
seeds = st.integers(0, 2**31)

# What is described: targets, what regressions leave of them, and what the best function of a column leaves.
DESCRIBED = (*TARGETS, *(f"{REGRESSIONS[r][0]} without {REGRESSIONS[r][1]}" for r in RESIDUALS), *MATCHED)
OF_PAIRS = (*TARGETS[:3], *DESCRIBED[len(TARGETS) :])
# Those that neither scale nor offset of y changes.
OF_Y = [DESCRIBED.index("y"), DESCRIBED.index("rank y"), len(TARGETS), len(TARGETS) + len(RESIDUALS)]
OF_Y_IN_PAIRS = [0, 3, 6]
# Functions of two columns whose sign depends on the order of the columns.
ANTISYMMETRIC = [SYMMETRIC_PAIRS.index(name) for name in ("x - z", "1/(x - z)", "sin(x - z)")]


def table(seed, n_rows=40, n_columns=3):
    """A table of ordinary data."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.2, 3.0, (n_rows, n_columns)) * rng.choice([-1.0, 1.0], (n_rows, n_columns))
    return X, X[:, 0] * np.sin(2.0 * X[:, -1]) + rng.normal(size=n_rows)


def described(X, y):
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return describe(torch.from_numpy(X[None]), torch.from_numpy(y[None]))


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
    return [given.table.numpy(), *correlations(given), *columns.values()]


def assert_close(first, second, atol=2e-5):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


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
    rank = np.argsort(np.argsort(y))
    targets = [y, np.log(np.abs(y)), 1.0 / y, y * y, np.sqrt(np.abs(y)), rank]
    for c, x in enumerate(X.T):
        functions = [
            *(x, x**2, x**3, 1.0 / x, x**-2, np.sqrt(np.abs(x)), np.log(np.abs(x)), np.exp(x), np.exp(-x)),
            *(np.sin(x), np.cos(x), np.tanh(x), np.abs(x), np.exp(-x * x), x**4, np.argsort(np.argsort(x))),
        ]
        expected = np.corrcoef(functions, targets)[: len(functions), len(functions) :]
        np.testing.assert_allclose(found[c, :, : len(TARGETS)], expected, atol=1e-5)


@settings(max_examples=10)
@given(seeds)
def test_the_descriptions_of_pairs_are_correlations(seed):
    X, y = table(seed)
    _, found = correlations(described(X, y))
    targets = [y, np.log(np.abs(y)), 1.0 / y]
    for i, j in np.ndindex(3, 3):
        a, b = X[:, min(i, j)], X[:, max(i, j)]
        x, z = X[:, i], X[:, j]
        expected = {
            "x z": x * z, "x + z": x + z, "x^2 + z^2": x**2 + z**2, "log|x + z|": np.log(np.abs(x + z)),
            "log(x^2 + z^2)": np.log(x**2 + z**2), "1/(x + z)": 1.0 / (x + z), "exp(x z)": np.exp(x * z),
            "sqrt(x^2 + z^2)": np.hypot(x, z), "sin(x z)": np.sin(x * z), "cos(x z)": np.cos(x * z),
            "x^2 z": x * x * z, "x sin z": x * np.sin(z), "x cos z": x * np.cos(z),
            "x exp z": x * np.exp(z), "x exp -z": x * np.exp(-z), "x log|z|": x * np.log(np.abs(z)),
            "x^2/z": x * x / z, "x/z^2": x / z**2,
        }  # fmt: skip
        if i != j:
            expected |= {"x - z": a - b, "1/(x - z)": 1.0 / (a - b), "sin(x - z)": np.sin(a - b)}
            expected |= {"log|x - z|": np.log(np.abs(a - b)), "x/z": x / z, "exp(x/z)": np.exp(x / z)}
        names = [*SYMMETRIC_PAIRS, *ORDERED_PAIRS]
        for name, values in expected.items():
            # Functions near a pole have single values far above all others, in single precision.
            atol = 2e-3 if "/" in name or "log" in name else 2e-5
            theirs = np.corrcoef([values], targets)[0, 1:]
            np.testing.assert_allclose(found[i, j, names.index(name), :3], theirs, atol=atol, err_msg=name)


@settings(max_examples=20)
@given(seeds, st.integers(8, 60), st.integers(1, 4))
def test_the_order_of_the_rows_does_not_matter(seed, n_rows, n_columns):
    X, y = table(seed, n_rows, n_columns)
    order = np.random.default_rng(seed).permutation(n_rows)
    given, moved = described(X, y), described(X[order], y[order])
    assert_close(without_logits(given), without_logits(moved), 2e-4)


@settings(max_examples=20)
@given(seeds, st.permutations(range(4)))
def test_what_describes_columns_and_pairs_moves_with_the_columns(seed, order):
    X, y = table(seed, n_columns=4)
    given, moved = described(X, y), described(X[:, order], y)
    columns, pairs = correlations(given)
    columns_moved, pairs_moved = correlations(moved)
    assert_close([columns[order], given.table], [columns_moved, moved.table])
    pairs, pairs_moved = pairs[np.ix_(order, order)].copy(), pairs_moved.copy()
    # Up to the sign, which is that of the column before minus the one after it.
    for values in (pairs, pairs_moved):
        values[:, :, ANTISYMMETRIC] = np.abs(values[:, :, ANTISYMMETRIC])
    assert_close([pairs], [pairs_moved])
    parts, parts_moved = rest_of_columns(given), rest_of_columns(moved)
    for name in parts.keys() - {"logits"}:
        np.testing.assert_allclose(parts[name][order], parts_moved[name], atol=2e-5, err_msg=name)


@settings(max_examples=20)
@given(seeds, st.floats(0.01, 100.0), st.floats(-100.0, 100.0))
def test_what_describes_y_does_not_depend_on_its_scale_and_offset(seed, scale, offset):
    X, y = table(seed)
    given, other = described(X, y), described(X, scale * y + offset)
    columns, columns_other = correlations(given)[0], correlations(other)[0]
    pairs, pairs_other = correlations(given)[1], correlations(other)[1]
    assert_close([columns[..., OF_Y]], [columns_other[..., OF_Y]], 1e-4)
    assert_close([pairs[..., OF_Y_IN_PAIRS]], [pairs_other[..., OF_Y_IN_PAIRS]], 1e-4)
    parts, parts_other = rest_of_columns(given), rest_of_columns(other)
    of_y = [at for at, (target, _) in enumerate(REGRESSIONS) if target == "y"]
    for name, chosen in (("smoothness", OF_Y), ("waves of y", slice(None)), ("coefficients", of_y)):
        ours, theirs = parts[name][:, chosen], parts_other[name][:, chosen]
        np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(given.table[0, of_y], other.table[0, of_y], atol=1e-4)
    # Those that mark the hypothesis of no offset do depend on it.
    if abs(offset) > scale:
        assert np.abs(columns[..., 1] - columns_other[..., 1]).max() > 1e-3


X3, Y3 = table(7)
NORMAL = np.random.default_rng(0).normal(size=20)
WHOLE = np.random.default_rng(1).integers(-3, 4, (30, 2)).astype(float)
EXTREME = {
    "constant columns": (np.full((20, 2), 3.0), NORMAL),
    "zeros": (np.zeros((20, 2)), NORMAL),
    "small columns": (1e-300 * X3, Y3),
    "large columns": (1e300 * X3 / 3.0, Y3),
    "both sizes": (X3 * [1e-300, 1.0, 1e300], Y3),
    "a small y": (X3, 1e-300 * Y3),
    "a large y": (X3, 1e300 * Y3 / np.abs(Y3).max()),
    "a constant y": (X3, np.full(len(Y3), 2.0)),
    "y is zero": (X3, np.zeros(len(Y3))),
    "one row twice": (X3[[0, 0]], Y3[[0, 0]]),
    "two rows": (X3[:2], Y3[:2]),
    "three rows": (X3[:3], Y3[:3]),
    "whole columns and a y with ties": (WHOLE, WHOLE[:, 0] % 2.0),
    "y is a column": (X3, X3[:, 1]),
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
    tables = [table(seed) for seed in range(3)]
    X, y = (torch.from_numpy(np.stack(arrays)) for arrays in zip(*tables))
    together = describe(X, y)
    for at, alone in enumerate(tables):
        of_one = Descriptions(*(part[at : at + 1] for part in together))
        assert_close(without_logits(of_one), without_logits(described(*alone)))


def test_a_column_that_does_not_vary_correlates_with_nothing():
    X, y = table(0)
    X[:, 1] = 2.5
    columns, _ = correlations(described(X, y))
    ranks = FUNCTIONS.index("rank x")  # equal values have those of their rows
    assert (np.delete(columns[1], ranks, axis=0) == 0.0).all()
    assert np.abs(columns[0]).max() > 0.2


def wide(n_columns=100, seed=0):
    """Many columns, three of which matter: 11, 42 and the last one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, n_columns))
    return X, X[:, 11] + np.exp(X[:, 42]) + 3.0 * np.abs(X[:, -1])


def test_of_many_columns_those_that_matter_are_described():
    X, y = wide()
    given, columns = describe_strongest(torch.from_numpy(X[None]), torch.from_numpy(y[None]))
    assert columns.tolist() == sorted(set(columns.tolist()))
    assert len(columns) == MOST_COLUMNS
    assert {11, 42, 99} <= set(columns.tolist())
    assert_close(without_logits(given), without_logits(described(X[:, columns], y)))


def test_of_few_columns_all_are_described():
    X, y = (values[..., :MOST_COLUMNS] if values.ndim > 1 else values for values in wide())
    _, columns = describe_strongest(torch.from_numpy(X[None]), torch.from_numpy(y[None]))
    assert columns.tolist() == list(range(MOST_COLUMNS))


# Counts of pairs.


def pairs_of(program, library):
    """Parents and children of a program of token names, by recursion."""
    found = []

    def visit(at, parent):
        found.append((parent, program[at]))
        end = at + 1
        for _ in range(library.tokens[program[at]].arity):
            end = visit(end, program[at])
        return end

    assert visit(0, len(library.operators)) == len(program)
    return found


@settings(max_examples=20)
@given(st.sampled_from(["koza", "koza-const", "physics"]), seeds)
def test_pairs_of_parent_and_child_are_counted(preset, seed):
    library = get_library(preset, 3)
    grammar = Constraints().grammar(library)
    population = random_population(20, library, grammar, new_state(seed))
    n_operators = len(library.operators)
    counts = pair_counts(population.tokens, population.lengths, grammar, n_operators)
    expected = np.zeros((20, n_operators + 1, len(library)))
    for b in range(20):
        for pair in pairs_of(population.tokens[b, : population.lengths[b]], library):
            expected[(b, *pair)] += 1.0
    np.testing.assert_array_equal(counts, expected)


# The network.


def lively(module, seed=0):
    """The same network with weights as large as training makes them."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.15 * torch.randn(parameter.shape, generator=noise))
    return module


@pytest.fixture(scope="module")
def generator():
    made = Generator.untrained(get_library("koza-const", 5), TINY, LIMITS, 0).eval()
    lively(made.guide)
    return made


def test_the_network_gives_each_parent_a_distribution_over_its_children(generator):
    X, y = (torch.from_numpy(np.stack(arrays)) for arrays in zip(*(table(seed) for seed in range(4))))
    log_probs = generator.guide(describe(X, y))
    library = generator.library
    assert log_probs.shape == (4, len(library.operators) + 1, library.first_variable + 3)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(log_probs.shape[:2]))
    assert log_probs.std(0).max() > 0.01  # of each table its own


@settings(max_examples=10)
@given(seeds, st.permutations(range(4)))
def test_columns_in_another_order_have_their_probabilities_in_that_order(seed, order):
    guide = lively(Guide(get_library("koza-const", 2), TINY), seed)
    given = described(*table(seed, n_columns=4))
    moved = Descriptions(given.table, given.columns[:, order], given.pairs[:, order][:, :, order])
    with torch.no_grad():
        expected, found = guide(given), guide(moved)
    n = guide.n_fixed
    torch.testing.assert_close(found[..., :n], expected[..., :n], atol=2e-4, rtol=0.0)
    torch.testing.assert_close(found[..., n:], expected[..., n:][..., order], atol=2e-4, rtol=0.0)
    assert (expected[..., n:] - expected[..., n:].mean(-1, keepdim=True)).abs().max() > 1e-3


def test_every_description_reaches_the_probabilities(generator):
    given = Descriptions(*(part.clone().requires_grad_() for part in described(*table(3))))
    log_probs = generator.guide(given)
    (log_probs * torch.randn(log_probs.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    for part in given:
        assert (part.grad.abs().amax(tuple(range(part.dim() - 1))) > 0.0).all()


# Probabilities of a generator.


@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_probabilities_are_of_the_tokens_that_the_data_have(generator, n_columns):
    library = generator.library
    probabilities = generator.guide_probabilities(*table(0, n_columns=n_columns))
    assert probabilities.shape == (len(library.operators) + 1, len(library))
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    n_known = library.first_variable + n_columns
    assert (probabilities[:, :n_known] > 0.0).all()
    assert (probabilities[:, n_known:] == 0.0).all()


def test_probabilities_are_those_of_the_network(generator):
    X, y = table(0)
    with torch.no_grad():
        expected = generator.guide(described(X, y))[0].exp()
    found = generator.guide_probabilities(X, y)
    np.testing.assert_allclose(found[:, : generator.guide.n_fixed + 3], expected, atol=1e-6)
    as_given = generator.guide_probabilities(np.asfortranarray(X), y)
    np.testing.assert_allclose(as_given, found, atol=1e-6)


def test_columns_that_are_not_described_are_less_likely_than_any_that_is():
    config = replace(NO_GUIDE, max_rows=200)
    made = Generator.untrained(get_library("koza", 100), config, LIMITS, 0).with_guide(0)
    X, y = wide()
    probabilities = made.guide_probabilities(X, y)
    of_columns = probabilities[:, made.library.first_variable :]
    _, columns = describe_strongest(torch.from_numpy(X[None]), torch.from_numpy(y[None]))
    left_out = np.setdiff1d(np.arange(100), columns)
    assert (of_columns[:, left_out] > 0.0).all()
    assert (of_columns[:, left_out].max(axis=1) < 0.5 * of_columns[:, columns].min(axis=1)).all()


def test_more_rows_than_are_read_are_drawn_by_seed(generator):
    X, y = table(0, n_rows=300)
    before = X.copy(), y.copy()
    first, again, other = (generator.guide_probabilities(X, y, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    few = np.random.default_rng(1).choice(300, TINY.max_rows, replace=False)
    np.testing.assert_allclose(generator.guide_probabilities(X[few], y[few]), first, atol=1e-6)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_the_number_of_threads_does_not_change_the_probabilities():
    made = Generator.untrained(get_library("koza", 12), replace(TINY, max_rows=200), LIMITS, 0)
    lively(made.guide)
    X, y = table(0, n_rows=200, n_columns=12)
    before = torch.get_num_threads()
    try:
        found = []
        for n_threads in (1, 2, 4):
            torch.set_num_threads(n_threads)
            found.append(made.guide_probabilities(X, y))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)


def test_a_generator_without_a_guide_has_no_probabilities():
    made = Generator.untrained(get_library("koza", 2), NO_GUIDE, LIMITS, 0)
    assert made.guide is None
    assert made.guide_probabilities(*table(0, n_columns=2)) is None
    assert not any("guide" in name for name in (*made.input_names(), *made.state_dict()))


def test_a_guide_is_added_to_shared_weights():
    plain = Generator.untrained(get_library("koza", 2), NO_GUIDE, LIMITS, 0)
    state = torch.get_rng_state()
    first, again, other = (plain.with_guide(seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert plain.guide is None
    assert plain.config == NO_GUIDE
    assert first.config == NO_GUIDE.with_guide()
    assert first.config.guide_width == GUIDE_WIDTH
    theirs = dict(first.named_parameters())
    assert all(theirs[name] is parameter for name, parameter in plain.named_parameters())
    weights = [list(made.guide.parameters()) for made in (first, again, other)]
    assert all(torch.equal(a, b) for a, b in zip(weights[0], weights[1], strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(weights[0], weights[2], strict=True))
    assert first.with_guide(5) is first
    assert first.with_variables(2).guide is first.guide
    assert first.refinable_copy().guide is first.guide


# Files.


@pytest.fixture
def folder(tmp_path, generator):
    save_generator(generator, tmp_path / "saved", {})
    return tmp_path / "saved"


def rewrite(folder, generator, **header):
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, metadata=header_of(generator) | header)


def test_a_loaded_guide_is_the_saved_one(folder, generator):
    loaded = load_generator(folder)
    assert loaded.config == TINY
    X, y = table(0)
    expected = generator.guide_probabilities(X, y)
    np.testing.assert_array_equal(loaded.guide_probabilities(X, y), expected)


def test_a_guide_that_was_added_is_saved_and_loaded(tmp_path):
    made = Generator.untrained(get_library("koza", 2), NO_GUIDE, LIMITS, 0).with_guide(0)
    save_generator(made, tmp_path, {})
    X, y = table(0, n_columns=2)
    found = load_generator(tmp_path).guide_probabilities(X, y)
    np.testing.assert_array_equal(found, made.eval().guide_probabilities(X, y))


def test_the_header_names_what_a_guide_reads_and_other_names_are_refused(folder, generator):
    names = generator.input_names()
    written = json.loads(header_of(generator)["input_layout"])
    assert written["names"].keys() == names.keys() >= descriptions.names().keys()
    for part in descriptions.names():
        swapped = [names[part][1], names[part][0], *names[part][2:]]
        changed = json.dumps(written | {"names": names | {part: swapped}})
        rewrite(folder, generator, input_layout=changed)
        with pytest.raises(ValueError, match=f"of a {part}, and this version"):
            load_generator(folder)


@pytest.mark.parametrize("width", [32, 15, 0, -1, 16.5, "16", None, True, 10**9, 100_000])
def test_a_damaged_width_of_the_guide_is_refused(folder, generator, width):
    config = json.loads(header_of(generator)["config"]) | {"guide_width": width}
    rewrite(folder, generator, config=json.dumps(config))
    with pytest.raises(ValueError, match=r"weights\.safetensors .*pretrain"):
        load_generator(folder)


def test_a_file_from_before_the_guide_is_read(tmp_path):
    made = Generator.untrained(get_library("koza", 2), NO_GUIDE, LIMITS, 0)
    save_generator(made, tmp_path, {})
    config = json.loads(header_of(made)["config"])
    older = {name: value for name, value in config.items() if not name.startswith("guide")}
    assert len(older) == len(config) - 3
    rewrite(tmp_path, made, config=json.dumps(older))
    loaded = load_generator(tmp_path)
    assert loaded.guide is None
    assert loaded.config.guide_width == 0
