"""The conditional generator: one distribution, however it is asked, and always of the right data set."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library, get_library
from dgsr.generator import sampling
from dgsr.generator.compiled_decoder import BLOCK
from dgsr.generator.config import CONFIGS, GeneratorConfig
from dgsr.generator.encoder import standardise
from dgsr.generator.generator import Generator
from dgsr.generator.guide import descriptions
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.random import new_state
from searches import log_prob

TINY = GeneratorConfig(
    encoder_width=16, encoder_heads=2, encoder_layers=1, n_inducing=4, n_latents=2,
    tree_embedding=8, tree_heads=2, tree_layers=2, decoder_width=16, decoder_heads=2, decoder_layers=2,
    max_length=12,
)  # fmt: skip
ROWS = GeneratorConfig()
# Widths that are no multiples of the four inputs that a compiled product takes at a time.
UNEVEN = replace(TINY, tree_embedding=7, decoder_width=18)
CONFIGURATIONS = CONFIGS | {"tiny": TINY, "rows": ROWS, "uneven": UNEVEN}


def lively(library, config, constraints=None, seed=0):
    """A generator with weights as large as training makes them, so that everything shows in its output."""
    constraints = constraints or Constraints(1, config.max_length)
    generator = Generator.untrained(library, config, constraints, seed)
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in generator.named_parameters():
            scale = 0.02 if "column_outputs" in name else 0.15  # pointing multiplies two noisy vectors
            parameter.add_(torch.randn(parameter.shape, generator=noise) * scale)
    return generator.eval()


def datasets(n, n_rows=20, n_variables=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_rows, n_variables)), rng.normal(size=(n, n_rows)) * np.arange(1, n + 1)[
        :, None
    ]


def latents(generator, X, y, n_variables=2):
    with torch.no_grad():
        return generator.encode(X, y, n_variables).latents


def scored(generator, encoding, tokens, lengths, n_variables=2):
    with torch.no_grad():
        result = generator.log_probs(encoding, tokens, lengths, generator.grammar(n_variables))
    return result.programs.numpy()


@pytest.fixture(scope="module", params=["tiny", "uneven", "paper", "rows", "base"])
def generator(request):
    return lively(get_library("koza", 2), CONFIGURATIONS[request.param])


@pytest.fixture(scope="module")
def tiny():
    return lively(get_library("koza", 2), TINY)


@pytest.mark.parametrize("n_datasets", [1, 3])
def test_the_sampler_reports_the_log_probabilities_of_the_training_pass(generator, n_datasets):
    with torch.no_grad():
        encoding = generator.encode(*datasets(n_datasets), 2)
    samples = generator.sample_encoded(encoding, 60, generator.grammar(2), new_state(1))
    again = scored(generator, encoding, samples.tokens, samples.lengths)
    assert samples.log_probs.std() > 1.0
    np.testing.assert_allclose(again.ravel(), samples.log_probs, atol=1e-4)


@pytest.mark.parametrize("n", [BLOCK, 7])
def test_the_compiled_steps_are_those_of_torch(generator, n, monkeypatch):
    """The same random numbers give the same programs, one block at a time."""
    encoding = generator.encode(*datasets(1), 2).detached()
    grammar = generator.grammar(2)
    compiled = generator.sample_encoded(encoding, n, grammar, new_state(5))
    monkeypatch.setattr(sampling, "_draw_compiled", sampling._draw_with_torch)
    by_torch = generator.sample_encoded(encoding, n, grammar, new_state(5))
    np.testing.assert_array_equal(compiled.tokens, by_torch.tokens)
    np.testing.assert_array_equal(compiled.lengths, by_torch.lengths)
    np.testing.assert_allclose(compiled.log_probs, by_torch.log_probs, atol=1e-4)
    assert len(np.unique(compiled.tokens, axis=0)) > n // 3


def test_sampler_and_training_pass_agree_with_constants_and_a_length_prior():
    constraints = Constraints(4, 20, 3, length_loc=8.0, length_scale=3.0)
    generator = lively(get_library("koza-const", 3), CONFIGS["base"], constraints)
    with torch.no_grad():
        encoding = generator.encode(*datasets(2, n_variables=3), 3)
    samples = generator.sample_encoded(encoding, 100, generator.grammar(3), new_state(1))
    again = scored(generator, encoding, samples.tokens, samples.lengths, 3)
    np.testing.assert_allclose(again.ravel(), samples.log_probs, atol=1e-4)


def test_programs_are_sampled_for_the_data_set_in_whose_place_they_stand(generator):
    """Scored with another data set, a program has another probability; with its own, the sampler's."""
    n, k = 4, 25
    with torch.no_grad():
        encoding = generator.encode(*datasets(n), 2)
    samples = generator.sample_encoded(encoding, k, generator.grammar(2), new_state(2))
    tokens, lengths = samples.tokens.reshape(n, k, -1), samples.lengths.reshape(n, k)
    order = np.array([2, 0, 3, 1])
    permuted = scored(
        generator, encoding.of(order), tokens[order].reshape(n * k, -1), lengths[order].reshape(n * k)
    )
    np.testing.assert_allclose(permuted, samples.log_probs.reshape(n, k)[order], atol=1e-4)
    wrong = scored(generator, encoding.of(order), samples.tokens, samples.lengths)
    assert (np.abs(wrong - samples.log_probs.reshape(n, k)) > 1e-3).mean() > 0.9
    tiled = np.arange(n * k).reshape(k, n).T.ravel()  # data set 0, 1, 2, 3, 0, 1, ...: the defect
    tiled = scored(generator, encoding, samples.tokens[tiled], samples.lengths[tiled])
    assert (np.abs(tiled - samples.log_probs.reshape(k, n).T) > 1e-3).mean() > 0.6


def test_each_data_set_gets_its_own_distribution_from_one_call(tiny):
    with torch.no_grad():
        encoding = tiny.encode(*datasets(3), 2)
    grammar = tiny.grammar(2)
    together = tiny.sample_encoded(encoding, 4000, grammar, new_state(0)).tokens.reshape(3, 4000, -1)
    for j in range(3):
        alone = tiny.sample_encoded(encoding.of(np.array([j])), 4000, grammar, new_state(9)).tokens
        shares = [np.bincount(t[:, 0], minlength=10) / 4000 for t in (together[j], alone)]
        np.testing.assert_allclose(*shares, atol=0.04)


def test_what_stands_after_the_end_changes_neither_value_nor_gradient(generator):
    with torch.no_grad():
        encoding = generator.encode(*datasets(2), 2)
    samples = generator.sample_encoded(encoding, 30, generator.grammar(2), new_state(3))
    after = np.arange(samples.tokens.shape[1]) >= samples.lengths[:, None]
    assert after[:, : samples.lengths.max()].any()
    garbage = np.where(after, np.random.default_rng(0).integers(0, 10, after.shape), samples.tokens)

    def value_and_gradient(tokens):
        generator.zero_grad()
        result = generator.log_probs(encoding, tokens, samples.lengths, generator.grammar(2))
        (result.programs.sum() + result.entropies.sum()).backward()
        gradient = torch.cat([p.grad.ravel() for p in generator.decoder.parameters()])
        return result.programs.detach().numpy(), result.entropies.detach().numpy(), gradient.numpy()

    for clean, dirty in zip(value_and_gradient(samples.tokens), value_and_gradient(garbage)):
        np.testing.assert_allclose(dirty, clean, atol=1e-4)
    generator.zero_grad()


def test_a_short_program_is_scored_the_same_beside_a_long_one(generator):
    with torch.no_grad():
        encoding = generator.encode(*datasets(1), 2)
    samples = generator.sample_encoded(encoding, 40, generator.grammar(2), new_state(4))
    together = scored(generator, encoding, samples.tokens, samples.lengths)[0]
    for b in np.argsort(samples.lengths)[[0, 1, 20]]:
        alone = scored(generator, encoding, samples.tokens[b : b + 1], samples.lengths[b : b + 1])
        assert alone[0, 0] == pytest.approx(together[b], abs=1e-4)


def test_entropies_are_those_of_the_choices_and_zero_after_the_end(tiny):
    with torch.no_grad():
        encoding = tiny.encode(*datasets(1), 2)
        grammar = tiny.grammar(2)
        samples = tiny.sample_encoded(encoding, 4000, grammar, new_state(4))
        entropies = tiny.log_probs(encoding, samples.tokens, samples.lengths, grammar).entropies[0].numpy()
    inside = np.arange(entropies.shape[1]) < samples.lengths[:, None]
    assert (entropies[~inside] == 0).all()
    assert (entropies[inside] >= -1e-5).all()
    assert (entropies <= np.log(10) + 1e-5).all()
    # E[-log p] is the expected sum of the entropies on the way.
    assert entropies.sum(axis=1).mean() == pytest.approx(-samples.log_probs.mean(), rel=0.03)


def test_later_tokens_and_tree_states_do_not_reach_earlier_positions(generator):
    """No gradient either, of the tree-state encoder just as of the decoder itself."""
    n_tokens, length, changed = 10, 9, 5
    rng = np.random.default_rng(0)
    with torch.no_grad():
        memory = generator.decoder.memory(generator.encode(*datasets(2), 2).latents)
    n_kinds = (n_tokens + 1, generator.library.first_variable, n_tokens + 1)  # a variable is no parent
    inputs = [torch.from_numpy(rng.integers(0, n, (2, 3, length))) for n in n_kinds]
    before = generator.decoder(*inputs, memory)
    for i in range(3):  # previous tokens, parents, siblings
        others = [tensor.clone() for tensor in inputs]
        others[i][..., changed:] = (others[i][..., changed:] + 1 + i) % n_kinds[i]
        after = generator.decoder(*others, memory)
        torch.testing.assert_close(after[:, :, :changed], before[:, :, :changed], atol=1e-5, rtol=1e-5)
        assert (after[:, :, changed:] - before[:, :, changed:]).abs().amax(-1).min() > 1e-4


def test_earlier_tokens_and_tree_states_do_reach_later_positions():
    """Through the attention of the tree-state encoder too, which a mask could have cut."""
    generator = lively(get_library("koza", 2), CONFIGS["paper"])
    with torch.no_grad():
        memory = generator.decoder.memory(generator.encode(*datasets(1), 2).latents)
        inputs = [torch.zeros((1, 1, 6), dtype=torch.int64) for _ in range(3)]
        before = generator.decoder(*inputs, memory)
        for i in range(3):
            others = [tensor.clone() for tensor in inputs]
            others[i][..., 0] = 5
            assert (generator.decoder(*others, memory) - before)[..., -1, :].abs().max() > 1e-4


def test_the_encoding_does_not_depend_on_the_order_of_the_rows(generator):
    X, y = datasets(2, n_rows=37)
    order = np.random.default_rng(0).permutation(37)
    before, after = latents(generator, X, y), latents(generator, X[:, order], y[:, order])
    torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)
    shuffled = latents(generator, X, y[:, order])
    assert (shuffled - before).abs().max() > 1e-2  # which y belongs to which x does matter


def test_a_data_set_is_encoded_the_same_alone_and_beside_others(generator):
    X, y = datasets(3)
    together = latents(generator, X, y)
    for j in range(3):
        alone = generator.encode_dataset(X[j], y[j]).latents
        torch.testing.assert_close(alone[0], together[j], atol=1e-4, rtol=1e-4)


def test_every_row_and_column_of_the_data_changes_the_encoding(generator):
    X, y = datasets(1)
    before = latents(generator, X, y)
    for column in range(3):
        Z = np.concatenate([X, y[..., None]], axis=-1)
        Z[0, 7, column] += 1.0
        assert (latents(generator, Z[..., :2], Z[..., 2]) - before).abs().max() > 1e-4


def test_columns_that_do_not_count_are_not_read(generator):
    X, y = datasets(1)
    others = X.copy()
    others[..., 1] = 1e3
    torch.testing.assert_close(latents(generator, others, y, 1), latents(generator, X, y, 1))
    n = generator.config.n_latents
    one, two = (latents(generator, X, y, n_columns)[:, :n] for n_columns in (1, 2))
    assert (one - two).abs().max() > 1e-4


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e8, 1e300])
def test_data_of_any_scale_are_encoded_to_finite_numbers(generator, scale):
    X, y = datasets(1)
    assert torch.isfinite(latents(generator, X * scale, y * scale)).all()
    population = generator.sample(X[0] * scale, y[0] * scale, 20)
    assert np.isfinite(log_prob(generator, population, X[0] * scale, y[0] * scale)).all()


@pytest.mark.parametrize("n_samples", [1, 7, pytest.param(1000, marks=pytest.mark.slow)])
def test_sampled_programs_are_valid(generator, n_samples):
    rng = np.random.default_rng(0)
    population = generator.sample(rng.normal(size=(30, 2)), rng.normal(size=30), n_samples, random_state=1)
    assert len(population) == n_samples
    assert are_valid(population.tokens, population.lengths, generator.grammar(2)).all()
    after = np.arange(population.tokens.shape[1]) >= population.lengths[:, None]
    assert (population.tokens[after] == 0).all()


def test_a_seed_decides_the_sample():
    generator = lively(get_library("koza-const", 2), TINY, Constraints(3, 12, 2))
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    first, again, other = (generator.sample(X, y, 50, random_state=s).tokens for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert are_valid(first, generator.sample(X, y, 50, 1).lengths, generator.grammar(2)).all()


def test_log_prob_of_a_sample_is_that_of_its_data():
    generator = lively(get_library("koza", 2), TINY)
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    population = generator.sample(X, y, 50, random_state=3)
    encoding = generator.encode_dataset(X, y)
    samples = generator.sample_encoded(encoding, 50, generator.grammar(2), new_state(3))
    np.testing.assert_array_equal(population.tokens, samples.tokens)
    np.testing.assert_allclose(log_prob(generator, population, X, y), samples.log_probs, atol=1e-4)
    assert np.abs(log_prob(generator, population, X, -y) - samples.log_probs).max() > 0.01


def enumerated(library, constraints, n_variables):
    """Every program within the constraints, as arrays."""
    programs = [
        p for n in range(1, constraints.max_length + 1) for p in product(range(len(library)), repeat=n)
    ]
    tokens = np.zeros((len(programs), constraints.max_length), dtype=np.int64)
    for b, program in enumerate(programs):
        tokens[b, : len(program)] = program
    lengths = np.array([len(program) for program in programs])
    valid = are_valid(tokens, lengths, constraints.grammar(library, n_variables))
    return tokens[valid], lengths[valid]


@pytest.mark.parametrize("max_length", [3, 4, 5])
@pytest.mark.parametrize(("length_scale", "n_variables"), [(0.0, 2), (2.0, 1)])
def test_probabilities_of_all_programs_sum_to_one(max_length, length_scale, n_variables):
    library = Library("mini", ("add", "sin", "exp"), True, 2)
    constraints = Constraints(2, max_length, 1, length_loc=4.0, length_scale=length_scale)
    for config in (TINY, CONFIGS["paper"]):
        generator = lively(library, config, constraints, seed=max_length)
        with torch.no_grad():
            encoding = generator.encode(*datasets(2), n_variables)
        tokens, lengths = enumerated(library, constraints, n_variables)
        log_probs = scored(generator, encoding, np.tile(tokens, (2, 1)), np.tile(lengths, 2), n_variables)
        np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1.0, rtol=1e-5)


def test_programs_are_sampled_as_often_as_their_probability_says():
    library, n = Library("mini", ("add", "sin"), True, 2), 20000
    constraints = Constraints(1, 4, 1, length_loc=3.0, length_scale=1.0)
    generator = lively(library, TINY, constraints)
    tokens, lengths = enumerated(library, constraints, 2)
    with torch.no_grad():
        encoding = generator.encode(*datasets(2), 2)
    log_probs = scored(generator, encoding, np.tile(tokens, (2, 1)), np.tile(lengths, 2))
    expected = n * np.exp(log_probs.astype(np.float64))
    samples = generator.sample_encoded(encoding, n, generator.grammar(2), new_state(0)).tokens
    index = {tuple(row): i for i, row in enumerate(tokens)}
    assert len(index) == len(tokens) > 15
    distances = []
    for j in range(2):
        keys = [index[tuple(row)] for row in samples[j * n : (j + 1) * n]]
        counts = np.bincount(keys, minlength=len(tokens))
        common = expected[j] > 5
        observed = [*counts[common], counts[~common].sum()]
        predicted = np.array([*expected[j][common], expected[j][~common].sum()]) + 1e-9
        assert chisquare(observed, predicted * sum(observed) / predicted.sum()).pvalue > 1e-3
        other = np.array([*expected[1 - j][common], expected[1 - j][~common].sum()]) + 1e-9
        distances.append(chisquare(observed, other * sum(observed) / other.sum()).pvalue)
    assert max(distances) < 1e-3  # and the other data set's probabilities do not fit


def test_variables_the_data_lack_are_never_sampled(generator):
    rng = np.random.default_rng(0)
    population = generator.sample(rng.normal(size=(30, 1)), rng.normal(size=30), 200)
    x1, x2 = generator.library.index["x1"], generator.library.index["x2"]
    inside = np.arange(population.tokens.shape[1]) < population.lengths[:, None]
    assert (population.tokens[inside] == x1).any()
    assert not (population.tokens[inside] == x2).any()


def test_more_columns_than_the_generator_knows_are_refused_with_the_mend(tiny):
    with pytest.raises(ValueError, match=r"3 columns.*at most 2.*generator='untrained'"):
        tiny.sample(np.ones((10, 3)), np.arange(10.0), 5)


def test_an_encoder_with_places_for_its_variables_is_not_widened(tiny):
    assert tiny.with_variables(1) is tiny
    with pytest.raises(ValueError, match="knows 2 columns and X has 3"):
        tiny.with_variables(3)


def test_rows_beyond_the_most_that_are_read_are_sampled_by_seed(tiny):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    first, again, other = (tiny.encode_dataset(X, y, seed).latents for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_preset_of_the_paper_has_as_many_parameters_as_the_paper_says():
    library = get_library("koza", 2)
    generator = Generator.untrained(library, CONFIGS["paper"], Constraints(4, 30), seed=0)
    assert generator.n_parameters() == pytest.approx(122_446, rel=0.02)
    assert generator.n_parameters() == sum(p.numel() for p in generator.parameters())


def test_a_refinable_copy_shares_the_encoder_and_not_the_decoder(tiny):
    twin = tiny.refinable_copy()
    assert twin.encoder is tiny.encoder
    assert twin.library is tiny.library
    theirs = dict(tiny.decoder.named_parameters())
    assert theirs.keys() == dict(twin.decoder.named_parameters()).keys()
    for name, parameter in twin.decoder.named_parameters():
        assert torch.equal(parameter, theirs[name])
        assert parameter.data_ptr() != theirs[name].data_ptr()
    before = {name: parameter.clone() for name, parameter in tiny.state_dict().items()}
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    population = twin.sample(X, y, 20)
    encoding = twin.encode_dataset(X, y).detached()
    optimizer = torch.optim.Adam(twin.decoder.parameters(), lr=1e-3)
    grammar = twin.grammar(2)
    (-twin.log_probs(encoding, population.tokens, population.lengths, grammar).programs.mean()).backward()
    optimizer.step()
    assert all(torch.equal(parameter, before[name]) for name, parameter in tiny.state_dict().items())
    assert (log_prob(twin, population, X, y) > log_prob(tiny, population, X, y)).mean() > 0.5


def test_weights_depend_on_the_seed_alone_and_leave_the_global_generator_alone():
    library, constraints = get_library("koza", 2), Constraints(1, 12)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = Generator.untrained(library, TINY, constraints, seed=1).state_dict()
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    again, other = (Generator.untrained(library, TINY, constraints, seed).state_dict() for seed in (1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_sampling_uses_no_global_random_state(tiny):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    tiny.sample(np.random.default_rng(0).normal(size=(1000, 2)), np.arange(1000.0), 20)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002


def test_a_network_gone_astray_says_so():
    generator = Generator.untrained(get_library("koza", 2), TINY, Constraints(1, TINY.max_length), 0)
    torch.nn.init.constant_(generator.decoder.out.bias, float("nan"))
    with pytest.raises(ValueError, match=r"not finite.*lower learning_rate"):
        generator.sample(np.ones((5, 2)), np.arange(5.0), 3)


def test_constraints_that_leave_no_token_say_so():
    library = Library("trigonometric", ("sin", "cos"), False, 1)
    generator = Generator.untrained(library, TINY, Constraints(3, TINY.max_length), 0)
    with pytest.raises(ValueError, match="relax min_length"):
        generator.sample(np.ones((5, 1)), np.arange(5.0), 3)


def test_programs_longer_than_the_network_can_read_are_refused():
    with pytest.raises(ValueError, match="max_length"):
        Generator(get_library("koza", 2), TINY, Constraints(1, TINY.max_length + 1))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"encoder": "trees"}, "encoder='trees'"),
        ({"decoder_width": 15}, "15"),
        ({"encoder_heads": 0}, "encoder_heads=0"),
        ({"decoder_layers": -1}, "decoder_layers=-1"),
        ({"max_length": 2.5}, "max_length=2.5"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        GeneratorConfig(**changes)


def test_a_standardised_target_is_read_the_same_in_any_unit():
    generator = lively(get_library("koza-const", 2), replace(ROWS, target="standardised"), Constraints())
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 3.0, (20, 2))
    y = X[:, 0] * X[:, 1]
    own = generator.encode_dataset(X, y).latents
    for scale, offset in ((3.0, 7.0), (1e6, -1e5), (1e-7, 0.0)):
        again = generator.encode_dataset(X, scale * y + offset).latents
        torch.testing.assert_close(again, own, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(generator.encode_dataset(X, -y).latents, own, atol=1e-3)
    raw = lively(get_library("koza-const", 2), ROWS, Constraints())
    one, other = (raw.encode_dataset(X, target).latents for target in (y, 3.0 * y))
    assert not torch.allclose(one, other, atol=1e-3)


@pytest.mark.parametrize("preset", ["koza", "physics", "synth"])
@pytest.mark.parametrize("n_variables", [1, 3])
def test_every_number_the_network_reads_has_a_name_of_its_own(preset, n_variables):
    library = get_library(preset, n_variables)
    generator = Generator.untrained(library, CONFIGS["paper"], Constraints(), 0)
    names = generator.input_names()
    assert names.keys() == {"row", "token", "state of the tree"}
    assert len(names["row"]) == generator.encoder.embed.in_features
    assert len(names["token"]) == generator.decoder.tokens.num_embeddings == len(library) + 1
    generator = Generator.untrained(library, CONFIGS["base"], Constraints(), 0)
    names = generator.input_names()
    assert names.keys() == {*descriptions.names(), "token", "state of the tree"}
    assert len(names["token"]) == generator.decoder.tokens.num_embeddings == library.first_variable + 1
    assert all(len(set(part)) == len(part) for part in names.values())


@pytest.mark.parametrize("preset", ["paper", "rows"])
def test_a_standardised_encoding_depends_neither_on_the_order_of_rows_nor_on_units(preset):
    config = replace(CONFIGURATIONS[preset], target="standardised")
    generator = Generator.untrained(get_library("koza-const", 3), config, Constraints(), 0)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1.0, 5.0, (30, 2)), rng.normal(size=30)
    order = rng.permutation(30)
    latents = generator.encode_dataset(X, y).latents
    for again in (generator.encode_dataset(X[order], y[order]), generator.encode_dataset(X, 1e9 * y - 5.0)):
        np.testing.assert_allclose(latents, again.latents, atol=1e-4)


def test_a_standardised_target_that_does_not_vary_is_zero():
    y = torch.tensor([[0.1, 0.1, 0.1], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
    read = standardise(y)
    assert (read[:2] == 0.0).all()
    torch.testing.assert_close(read[2], torch.tensor([-1.5, 0.0, 1.5]).double() * (2 / 3) ** 0.5)


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="target='other'"):
        GeneratorConfig(target="other")
