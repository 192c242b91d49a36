"""The encoder that reads descriptions, the guide that reads its vectors, and their generator on disk."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import get_library
from dgsr.generator import sampling
from dgsr.generator.checkpoints import WEIGHTS, header_of, load_generator, save_generator, write_tensors
from dgsr.generator.compiled_decoder import BLOCK
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.generator.guide import descriptions
from dgsr.generator.guide.descriptions import MOST_COLUMNS, Descriptions, by_strength
from dgsr.generator.guide.network import DescriptionEncoder
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.pair_counts import pair_counts
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population
from searches import (
    described,
    lively,
    log_prob,
    table,
    table_with_ties,
    tensors,
    tiny_guided_config,
    wide_table,
)

TINY = tiny_guided_config(12, max_rows=60)
LIMITS = Constraints(max_length=12)
seeds = st.integers(0, 2**31)


def untrained(library="koza-const", n_variables=5, config=TINY, seed=0):
    return Generator.untrained(get_library(library, n_variables), config, LIMITS, seed).eval()


def made_lively(library="koza-const", n_variables=5, config=TINY):
    generator = untrained(library, n_variables, config)
    for part in (generator.encoder, generator.guide):
        lively(part)
    lively(generator.decoder, scale=0.05)
    return generator


@pytest.fixture(scope="module")
def generator():
    return made_lively()


def probabilities_of(generator, X, y, seed=0):
    return generator.guide_probabilities(generator.encode_dataset(X, y, seed))


# ---- counts of pairs --------------------------------------------------------------------------


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


# ---- the encoder ------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.sampled_from([table, table_with_ties]), seeds)
def test_the_vectors_do_not_depend_on_the_order_of_the_rows(kind, seed):
    encoder = lively(DescriptionEncoder(TINY), seed)
    X, y = kind(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    with torch.no_grad():
        expected, found = (encoder(*tensors(*values), 3) for values in ((X, y), (X[order], y[order])))
        shuffled = encoder(*tensors(X, y[order]), 3)
    torch.testing.assert_close(found, expected, atol=5e-4, rtol=0.0)
    assert (shuffled - expected).abs().max() > 0.1  # which y belongs to which x does matter


@settings(max_examples=10)
@given(st.sampled_from([table, table_with_ties]), seeds, st.permutations(range(4)))
def test_columns_in_another_order_have_their_vectors_in_that_order(kind, seed, order):
    encoder = lively(DescriptionEncoder(TINY), seed)
    X, y = kind(seed, n_columns=4)
    with torch.no_grad():
        expected, found = (encoder(*tensors(values, y), 4) for values in (X, X[:, order]))
    torch.testing.assert_close(found[:, 0], expected[:, 0], atol=1e-4, rtol=0.0)
    torch.testing.assert_close(found[:, 1:], expected[:, 1:][:, order], atol=1e-4, rtol=0.0)
    assert expected[:, 1:].std(1).max() > 0.1


def test_many_tables_are_encoded_as_each_alone(generator):
    n = 40  # more than are described at once
    many = [table(seed) for seed in range(n)]
    X, y = (np.stack(arrays) for arrays in zip(*many))
    with torch.no_grad():
        together = generator.encode(X, y, 3).latents
        for number in (0, 31, 32, 39):
            alone = generator.encode(X[[number]], y[[number]], 3).latents[0]
            torch.testing.assert_close(together[number], alone, atol=5e-4, rtol=0.0)
    assert together.shape == (n, 1 + 3, TINY.encoder_width)
    assert together.std(0).max() > 0.1


def test_columns_that_the_data_do_not_have_are_not_read(generator):
    X, y = table(0, n_columns=4)
    others = X.copy()
    others[:, 2:] = 99.0
    with torch.no_grad():
        expected, found = (generator.encode(values[None], y[None], 2).latents for values in (X, others))
        whole = generator.encode(X[None], y[None], 4).latents
    assert torch.equal(found, expected)
    assert found.shape[1] == 1 + 2
    assert (whole[:, :3] - found).abs().max() > 0.1


def test_every_description_reaches_the_vectors(generator):
    given = Descriptions(*(part.clone().requires_grad_() for part in described(*table(3))))
    latents = generator.encoder.read(given)
    (latents * torch.randn(latents.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    for part in given:
        assert (part.grad.abs().amax(tuple(range(part.dim() - 1))) > 0.0).all()
    generator.zero_grad()


def test_a_table_of_one_row_is_encoded_and_sampled_for(generator):
    X, y = table(0, n_rows=1)
    assert torch.isfinite(generator.encode_dataset(X, y).latents).all()
    assert len(generator.sample(X, y, 20)) == 20


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n_latents": 2}, "n_latents=2 must be 1 with encoder='descriptions'"),
        ({"encoder_heads": 3}, "16 must be a multiple of its 3 heads"),
    ],
)
def test_sizes_that_do_not_fit_the_encoder_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        replace(TINY, **changes)


# ---- the decoder ------------------------------------------------------------------------------


def log_probs_of_variables(generator, X, y):
    """Log-probabilities of the programs that are one column."""
    n, first = X.shape[1], generator.library.first_variable
    tokens = np.zeros((n, LIMITS.max_length), dtype=np.int64)
    tokens[:, 0] = first + np.arange(n)
    with torch.no_grad():
        encoding = generator.encode(X[None], y[None], n)
        lengths = np.ones(n, dtype=np.int64)
        return generator.log_probs(encoding, tokens, lengths, generator.grammar(n)).programs[0]


def as_short_as_one_column(config=TINY):
    return Generator.untrained(get_library("koza", 4), config, Constraints(1, 12), 0).eval()


def test_equal_columns_are_told_apart_by_their_order():
    generator = as_short_as_one_column()
    X, y = table(0, n_columns=4)
    X[:, 2] = X[:, 0]
    lively(generator.decoder)
    latents = generator.encode_dataset(X, y).latents[0]
    torch.testing.assert_close(latents[1], latents[3], atol=2e-3, rtol=0.0)
    found = log_probs_of_variables(generator, X, y)
    assert abs(found[0] - found[2]) > 0.05
    with torch.no_grad():
        generator.decoder.order.weight.zero_()
    found = log_probs_of_variables(generator, X, y)
    torch.testing.assert_close(found[0], found[2], atol=2e-3, rtol=0.0)


def test_only_the_order_of_columns_tells_a_variable_from_its_column():
    """Without it, the probability of x1 in one order is that of x3 in another."""
    generator = as_short_as_one_column()
    lively(generator.encoder)
    lively(generator.decoder, scale=0.05)
    X, y = table(0, n_columns=4)
    order = [2, 0, 3, 1]
    expected, found = (log_probs_of_variables(generator, values, y) for values in (X, X[:, order]))
    assert (found - expected[order]).abs().max() > 1e-3
    with torch.no_grad():
        generator.decoder.order.weight.zero_()
    expected, found = (log_probs_of_variables(generator, values, y) for values in (X, X[:, order]))
    torch.testing.assert_close(found, expected[order], atol=1e-3, rtol=0.0)
    assert expected.std() > 1e-2


def test_the_order_is_learned():
    generator = as_short_as_one_column()
    X, y = table(0, n_columns=3)
    encoding = generator.encode(X[None], y[None], 3)
    generator.decoder.memory(encoding.latents).outputs.sum().backward()
    gradient = generator.decoder.order.weight.grad
    assert (gradient[:3].abs().amax(1) > 0.0).all()
    assert (gradient[3:] == 0.0).all()


def test_the_encoder_of_rows_knows_the_order_itself():
    assert "decoder.order.weight" in as_short_as_one_column().state_dict()
    of_rows = as_short_as_one_column(replace(TINY, encoder="rows"))
    assert "decoder.order.weight" not in of_rows.state_dict()


# ---- the guide --------------------------------------------------------------------------------


def test_each_parent_has_a_distribution_over_its_children(generator):
    X, y = (np.stack(arrays) for arrays in zip(*(table(seed) for seed in range(4))))
    with torch.no_grad():
        log_probs = generator.guide(generator.encode(X, y, 3).latents)
    library = generator.library
    assert log_probs.shape == (4, len(library.operators) + 1, library.first_variable + 3)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(log_probs.shape[:2]))
    assert log_probs.std(0).max() > 0.01  # of each table its own


@settings(max_examples=10)
@given(st.sampled_from([table, table_with_ties]), seeds, st.permutations(range(4)))
def test_columns_in_another_order_have_their_probabilities_in_that_order(kind, seed, order):
    generator = made_lively("koza-const", 4)
    X, y = kind(seed, n_columns=4)
    expected, found = (probabilities_of(generator, values, y) for values in (X, X[:, order]))
    n = generator.library.first_variable
    np.testing.assert_allclose(found[:, :n], expected[:, :n], atol=1e-4)
    np.testing.assert_allclose(found[:, n:], expected[:, n:][:, order], atol=1e-4)
    assert np.ptp(expected[:, n:], axis=1).max() > 1e-3


@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_probabilities_are_of_the_tokens_that_the_data_have(generator, n_columns):
    library = generator.library
    probabilities = probabilities_of(generator, *table(0, n_columns=n_columns))
    assert probabilities.shape == (len(library.operators) + 1, len(library))
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    n_known = library.first_variable + n_columns
    assert (probabilities[:, :n_known] > 0.0).all()
    assert (probabilities[:, n_known:] == 0.0).all()


def test_probabilities_are_those_of_the_network(generator):
    X, y = table(0)
    with torch.no_grad():
        expected = generator.guide(generator.encoder.read(described(X, y)))[0].exp()
    found = probabilities_of(generator, X, y)
    np.testing.assert_allclose(found[:, : generator.guide.n_fixed + 3], expected, atol=1e-6)
    as_given = probabilities_of(generator, np.asfortranarray(X), y)
    np.testing.assert_allclose(as_given, found, atol=1e-6)


def test_more_rows_than_are_read_are_drawn_by_seed(generator):
    X, y = table(0, n_rows=300)
    before = X.copy(), y.copy()
    first, again, other = (probabilities_of(generator, X, y, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    few = np.random.default_rng(1).choice(300, TINY.max_rows, replace=False)
    np.testing.assert_allclose(probabilities_of(generator, X[few], y[few]), first, atol=1e-6)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_the_number_of_threads_does_not_change_the_probabilities():
    made = made_lively("koza", 12, replace(TINY, max_rows=200))
    X, y = table(0, n_rows=200, n_columns=12)
    before = torch.get_num_threads()
    try:
        found = []
        for n_threads in (1, 2, 4):
            torch.set_num_threads(n_threads)
            found.append(probabilities_of(made, X, y))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-5)


def test_a_generator_of_another_encoder_has_no_guide():
    made = untrained("koza", 2, replace(TINY, encoder="rows"))
    assert made.guide is None
    assert made.guide_probabilities(made.encode_dataset(*table(0, n_columns=2))) is None
    assert not any("guide" in name for name in (*made.input_names(), *made.state_dict()))


# ---- wide tables ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_wide_tables():
    return made_lively("koza", 5, replace(TINY, max_rows=200)).with_variables(100)


def test_of_a_wide_table_the_strongest_columns_are_read(of_wide_tables):
    X, y = wide_table()
    order = by_strength(*tensors(X, y)).numpy()
    read, unread = np.sort(order[:MOST_COLUMNS]), np.sort(order[MOST_COLUMNS:])
    assert {11, 42, 99} <= set(read.tolist())
    encoding = of_wide_tables.encode_dataset(X, y)
    np.testing.assert_array_equal(encoding.unread, unread)
    latents = encoding.latents[0]
    assert latents.shape == (101, TINY.encoder_width)
    alone = of_wide_tables.encode_dataset(X[:, read], y)
    assert alone.unread is None
    torch.testing.assert_close(latents[[0, *(1 + read)]], alone.latents[0], atol=1e-4, rtol=0.0)
    weakest = latents[1 + order[MOST_COLUMNS - 1]]
    assert (latents[1 + unread] == weakest).all()


def test_columns_that_are_not_read_are_less_likely_than_any_that_is(of_wide_tables):
    X, y = wide_table()
    encoding = of_wide_tables.encode_dataset(X, y)
    probabilities = of_wide_tables.guide_probabilities(encoding)
    of_columns = probabilities[:, of_wide_tables.library.first_variable :]
    read = np.setdiff1d(np.arange(100), encoding.unread)
    assert of_columns.shape[1] == 100
    least = of_columns[:, read].min(axis=1, keepdims=True)
    np.testing.assert_allclose(of_columns[:, encoding.unread], 0.1 * np.repeat(least, 76, axis=1))
    assert (of_columns > 0.0).all()
    assert np.ptp(of_columns[:, read], axis=1).max() > 1e-4


def test_a_table_of_as_many_columns_as_can_be_read_is_read_whole(of_wide_tables):
    X, y = wide_table(MOST_COLUMNS + 20)
    encoding = of_wide_tables.encode_dataset(X[:, :MOST_COLUMNS], y)
    assert encoding.unread is None
    assert encoding.latents.shape[1] == 1 + MOST_COLUMNS
    with torch.no_grad():
        whole = of_wide_tables.encode(X[None], y[None], MOST_COLUMNS).latents
    torch.testing.assert_close(encoding.latents, whole)
    assert of_wide_tables.encode_dataset(X[:, : MOST_COLUMNS + 1], y).unread.shape == (1,)


def test_what_was_not_read_stays_with_the_encoding(of_wide_tables):
    encoding = of_wide_tables.encode_dataset(*wide_table())
    for same in (encoding.detached(), encoding.of(np.array([0, 0]))):
        np.testing.assert_array_equal(same.unread, encoding.unread)
    probabilities = [of_wide_tables.guide_probabilities(e) for e in (encoding, encoding.detached())]
    np.testing.assert_array_equal(*probabilities)


@pytest.mark.parametrize("n_columns", [3, 9, 60])
def test_the_compiled_decoder_the_torch_one_and_the_training_pass_agree(
    of_wide_tables, n_columns, monkeypatch
):
    """For fewer columns than the generator was trained for, for more, and for more than are read."""
    X, y = table(2, n_columns=n_columns)
    encoding, grammar = of_wide_tables.encode_dataset(X, y).detached(), of_wide_tables.grammar(n_columns)
    compiled = of_wide_tables.sample_encoded(encoding, BLOCK, grammar, new_state(5))
    monkeypatch.setattr(sampling, "_draw_compiled", sampling._draw_with_torch)
    by_torch = of_wide_tables.sample_encoded(encoding, BLOCK, grammar, new_state(5))
    np.testing.assert_array_equal(compiled.tokens, by_torch.tokens)
    np.testing.assert_allclose(compiled.log_probs, by_torch.log_probs, atol=1e-4)
    with torch.no_grad():
        again = of_wide_tables.log_probs(encoding, compiled.tokens, compiled.lengths, grammar).programs
    np.testing.assert_allclose(again[0], compiled.log_probs, atol=1e-4)
    assert are_valid(compiled.tokens, compiled.lengths, grammar).all()
    used = np.unique(compiled.tokens) - of_wide_tables.library.first_variable
    assert used.max() > min(n_columns // 2, 10)


# ---- copies -----------------------------------------------------------------------------------


def test_a_widened_generator_is_the_same_on_the_columns_it_knew(generator):
    wide = generator.with_variables(30)
    assert wide.encoder is generator.encoder
    assert wide.guide is generator.guide
    assert generator.with_variables(5) is generator
    X, y = table(1, n_columns=5)
    encoding, other = (made.encode_dataset(X, y) for made in (generator, wide))
    assert torch.equal(encoding.latents, other.latents)
    n = len(generator.library)
    found = wide.guide_probabilities(other)
    np.testing.assert_array_equal(found[:, :n], generator.guide_probabilities(encoding))
    assert (found[:, n:] == 0.0).all()
    assert found.shape[1] == len(wide.library) == n + 25
    one, another = (
        made.sample_encoded(encoding, 50, made.grammar(5), new_state(1)).tokens for made in (generator, wide)
    )
    np.testing.assert_array_equal(one, another)


@pytest.mark.slow
def test_refining_a_copy_changes_neither_the_vectors_nor_the_guide(generator):
    twin = generator.refinable_copy()
    assert twin.encoder is generator.encoder
    assert twin.guide is generator.guide
    before = {name: tensor.clone() for name, tensor in generator.state_dict().items()}
    X, y = table(4, n_columns=5)
    population = twin.sample(X, y, 40)
    encoding, grammar = twin.encode_dataset(X, y).detached(), twin.grammar(5)
    probabilities = twin.guide_probabilities(encoding)
    optimizer = torch.optim.Adam(twin.decoder.parameters(), lr=1e-3)
    (-twin.log_probs(encoding, population.tokens, population.lengths, grammar).programs.mean()).backward()
    optimizer.step()
    assert all(torch.equal(tensor, before[name]) for name, tensor in generator.state_dict().items())
    assert all(parameter.grad is None for parameter in (*twin.encoder.parameters(), *twin.guide.parameters()))
    assert (twin.decoder.order.weight != generator.decoder.order.weight).any()
    assert (log_prob(twin, population, X, y) > log_prob(generator, population, X, y)).mean() > 0.5
    np.testing.assert_array_equal(twin.guide_probabilities(twin.encode_dataset(X, y)), probabilities)


# ---- files ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, generator):
    save_generator(generator, tmp_path / "saved", {})
    return tmp_path / "saved"


def rewrite(folder, generator, **header):
    write_tensors(folder / WEIGHTS, load_file(folder / WEIGHTS), header_of(generator) | header)


def test_a_loaded_generator_with_a_guide_is_the_saved_one(folder, generator):
    loaded = load_generator(folder)
    assert loaded.config == TINY
    state = generator.state_dict()
    assert loaded.state_dict().keys() == state.keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.state_dict().items())
    X, y = table(0)
    np.testing.assert_array_equal(probabilities_of(loaded, X, y), probabilities_of(generator, X, y))
    population = generator.sample(X, y, 50)
    np.testing.assert_array_equal(population.tokens, loaded.sample(X, y, 50).tokens)
    np.testing.assert_array_equal(log_prob(generator, population, X, y), log_prob(loaded, population, X, y))
    wide = wide_table()
    of_both = [probabilities_of(made.with_variables(100), *wide) for made in (generator, loaded)]
    np.testing.assert_array_equal(*of_both)


def test_the_preset_has_the_encoder_of_descriptions():
    made = Generator.untrained(get_library("physics", 5), CONFIGS["base"], Constraints(), 0)
    assert made.config.encoder == "descriptions"
    assert made.guide is not None
    assert made.guide.n_fixed == made.library.first_variable


def test_the_header_names_what_the_encoder_reads_and_other_names_are_refused(folder, generator):
    names = generator.input_names()
    written = json.loads(header_of(generator)["input_layout"])
    assert names.keys() == {*descriptions.names(), "token", "state of the tree"}
    assert written["names"].keys() == names.keys()
    assert all(len(set(part)) == len(part) for part in names.values())
    for part in descriptions.names():
        swapped = [names[part][1], names[part][0], *names[part][2:]]
        changed = json.dumps(written | {"names": names | {part: swapped}})
        rewrite(folder, generator, input_layout=changed)
        with pytest.raises(ValueError, match=f"of a {part}, and this version"):
            load_generator(folder)


@pytest.mark.parametrize(
    "change",
    [
        *({"encoder_width": width} for width in (32, 15, 0, -1, 16.5, "16", None, True, 10**9, 100_000)),
        *({"encoder_layers": 2}, {"n_latents": 2}, {"encoder": "columns"}, {"encoder": "rows"}),
        *({"guide_width": 16}, {"remainders": True}),
    ],
    ids=str,
)
def test_sizes_that_are_not_those_of_the_weights_are_refused(folder, generator, change):
    config = json.loads(header_of(generator)["config"]) | change
    rewrite(folder, generator, config=json.dumps(config))
    with pytest.raises(ValueError, match=r"weights\.safetensors .*pretrain"):
        load_generator(folder)
