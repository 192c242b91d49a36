"""A generator for another library, and for longer programs, than those it was trained on."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from dgsr import DGSRRegressor
from dgsr.expressions.formulas.description_length import prior_weights
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library, get_library
from dgsr.generator.adaptation import adapted, can_adapt
from dgsr.generator.checkpoints import save_generator
from dgsr.generator.choice import choose_generator
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.random import new_state
from dgsr.search.proposals import SHARES, guided_grammars
from searches import lively, table, tiny_guided_config, with_own

OPERATORS = ("add", "sub", "mul", "div", "exp", "sin")
LIMITS = Constraints(max_length=12)
FEWER = Library("fewer", ("sin", "mul", "add"), True, 3)


@pytest.fixture(scope="module")
def generator():
    library = Library("theirs", OPERATORS, True, 3)
    made = Generator.untrained(library, tiny_guided_config(12), LIMITS, 0).eval()
    for part in (made.encoder, made.guide):
        lively(part)
    lively(made.decoder, scale=0.05)
    return made


def logits(generator, programs, X, y):
    """Logits (n_tokens) of the token after each of some beginnings of programs, by names of tokens."""
    latents = generator.encode(X[None], y[None], X.shape[1]).latents
    memory, index = generator.decoder.memory(latents), generator.library.index
    none = len(generator.library)
    found = []
    for parent, sibling, written in programs:
        previous = [none, *(index[name] for name in written)]
        parents, siblings = (
            [none] * len(written) + [none if name is None else index[name]] for name in (parent, sibling)
        )
        inputs = (torch.tensor([[given]]) for given in (previous, parents, siblings))
        values = generator.decoder(*inputs, memory)[0, 0, -1].detach()
        found.append({token.name: float(values[i]) for i, token in enumerate(generator.library.tokens)})
    return found


BEGINNINGS = [
    (None, None, []),
    ("mul", None, ["mul"]),
    ("mul", "x2", ["mul", "x2"]),
    ("add", "sin", ["add", "sin", "x1"]),
]


def test_with_fewer_operators_the_logits_of_the_others_stay(generator):
    X, y = table(0)
    twin = adapted(generator, FEWER, 12)
    assert twin.library == FEWER
    for before, after in zip(
        logits(generator, BEGINNINGS, X, y), logits(twin, BEGINNINGS, X, y), strict=True
    ):
        assert after.keys() == {"sin", "mul", "add", "const", "x1", "x2", "x3"}
        assert after == pytest.approx({name: before[name] for name in after}, abs=1e-5)


def test_with_fewer_operators_the_guide_gives_the_others_their_shares(generator):
    X, y = table(1)
    twin = adapted(generator, FEWER, 12)
    before, after = (g.guide_probabilities(g.encode_dataset(X, y)) for g in (generator, twin))
    kept = [generator.library.index[token.name] for token in FEWER.tokens]
    parents = [*(OPERATORS.index(name) for name in FEWER.operators), len(OPERATORS)]
    expected = before[np.ix_(parents, kept)]
    np.testing.assert_allclose(after, expected / expected.sum(axis=1, keepdims=True), rtol=1e-4)


def test_the_given_generator_stays_as_it_is(generator):
    X, y = table(2)
    state = {name: tensor.clone() for name, tensor in generator.state_dict().items()}
    before = generator.sample(X, y, 50).tokens
    adapted(generator, with_own(FEWER), 20)
    assert all(torch.equal(tensor, state[name]) for name, tensor in generator.state_dict().items())
    np.testing.assert_array_equal(generator.sample(X, y, 50).tokens, before)
    assert adapted(generator, generator.library, 12) is generator


@pytest.mark.search
def test_operators_of_ones_own_are_never_written_and_keep_their_usual_weights(generator):
    X, y = table(3)
    library = with_own(FEWER.with_variables(5))
    twin = adapted(generator, library, 12)
    X = np.concatenate([X, X[:, :2] + 1.0], axis=1)
    population = twin.sample(X, y, 400)
    used = np.unique(population.tokens[np.arange(12) < population.lengths[:, None]])
    own = library.index["twice"]
    assert own not in used
    assert {library.index["sin"], library.index["x5"]} <= set(used.tolist())
    probabilities = twin.guide_probabilities(twin.encode_dataset(X, y))
    assert (probabilities[own] == 0.0).all()
    assert (probabilities[:, own] == 0.0).all()

    grammar = LIMITS.grammar(library)
    usual = prior_weights(grammar, library)
    weights = guided_grammars(grammar, library, probabilities)[0].weight
    np.testing.assert_allclose(weights[own], usual[own])
    np.testing.assert_allclose(weights[:, own], usual[:, own])
    np.testing.assert_allclose(weights[[0, -1]].sum(axis=1), 1.0)
    mul, sin = library.index["mul"], library.index["sin"]
    guided = (1.0 - usual[mul, own]) * probabilities[mul, sin]
    assert weights[mul, sin] == pytest.approx((1.0 - SHARES[0]) * usual[mul, sin] + SHARES[0] * guided)


@pytest.mark.parametrize("encoder", ["rows", "descriptions"])
def test_longer_programs_are_written_and_short_ones_are_as_likely_as_before(encoder, generator):
    X, y = table(4)
    if encoder == "rows":
        sizes = CONFIGS["paper"].with_max_length(12)
        library = Library("theirs", ("add", "mul", "sin"), False, 3)
        generator = Generator.untrained(library, sizes, LIMITS, 0).eval()
    twin = adapted(generator, generator.library, 25)
    encoding, short = twin.encode_dataset(X, y).detached(), generator.sample(X, y, 60)
    given = encoding, short.tokens, short.lengths, generator.grammar(3)
    assert torch.allclose(twin.log_probs(*given).programs, generator.log_probs(*given).programs, atol=1e-5)
    grammar = Constraints(14, 25).grammar(twin.library, 3)
    samples = twin.sample_encoded(encoding, 60, grammar, new_state(0))
    assert samples.lengths.max() > 14
    assert are_valid(samples.tokens, samples.lengths, grammar).all()
    with torch.no_grad():
        scored = twin.log_probs(encoding, samples.tokens, samples.lengths, grammar).programs
    np.testing.assert_allclose(scored.numpy().ravel(), samples.log_probs, atol=1e-4)


def test_a_training_learns_the_operators_that_its_start_does_not_know(generator):
    X, y = table(5)
    library = Library("more", (*OPERATORS, "tanh"), True, 3)
    twin = adapted(generator, library, 12, for_training=True)
    population = twin.sample(X, y, 400)
    assert library.index["tanh"] in population.tokens
    assert twin.guide_probabilities(twin.encode_dataset(X, y)).all()


def test_the_encoder_of_rows_needs_the_same_operators(generator):
    theirs = generator.library
    assert can_adapt("descriptions", theirs, FEWER)
    assert not can_adapt("descriptions", theirs, Library("others", ("cos", "tanh"), True, 3))
    assert can_adapt("rows", theirs, theirs.with_variables(9))
    assert not can_adapt("rows", theirs, FEWER)


@pytest.mark.search
def test_a_search_with_an_operator_of_ones_own_has_the_shipped_generator():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (60, 2))
    model = DGSRRegressor(
        with_own(get_library("physics")), max_length=40, max_evaluations=500, random_state=0
    ).fit(X, X[:, 0] * np.sin(3.0 * X[:, 1]))
    assert model.generator_.startswith("physics")
    assert model.pareto_front_[-1].loss < 1e-10


def test_a_folder_that_has_the_name_of_a_shipped_generator_is_not_taken_for_it(tmp_path, monkeypatch):
    library = get_library("physics", 2)
    name, generator = choose_generator("auto", library, LIMITS, 0)
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    for chosen in ("auto", name):
        assert choose_generator(chosen, library, LIMITS, 0)[1].library == generator.library
    for folder in (Path(name), f"./{name}"):
        with pytest.raises(ValueError, match=r"has no weights"):
            choose_generator(folder, library, LIMITS, 0)


def test_what_only_looks_like_a_generator_is_refused():
    class Other:
        encode_dataset = refinable_copy = None

    with pytest.raises(ValueError, match=r"generator=.* must be a dgsr Generator, a name or a folder"):
        choose_generator(Other(), get_library("physics", 2), LIMITS, 0)


def test_training_goes_on_with_the_constraints_of_the_generator():
    generator = Generator.untrained(get_library("koza", 2), CONFIGS["base"], Constraints(1, 20), 0)
    twin = adapted(generator, generator.library, generator.config.max_length, for_training=True)
    assert twin.constraints == generator.constraints


def test_where_no_generator_is_known_there_is_a_warning():
    library = with_own(Library("own", (), False, 2), "both", lambda x, y: x * y - x)
    with pytest.warns(UserWarning, match=r"knows the operators both; .* generator=None"):
        name, _ = choose_generator("auto", library, LIMITS, 0)
    assert name == "untrained"
    with pytest.warns(UserWarning, match="dgsr knows a library without operators; the search has an untr"):
        choose_generator("auto", Library("own", (), False, 2), LIMITS, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_generator("auto", get_library("physics", 2), LIMITS, 0)[0] != "untrained"


@pytest.mark.parametrize(("gap", "is_told"), [(0.46, True), (6.4, False)])
def test_a_generator_that_has_learned_nothing_says_so_when_it_is_used(tmp_path, gap, is_told):
    library = get_library("koza", 2)
    generator = Generator.untrained(library, CONFIGS["base"], Constraints(1, 20), 0)
    figures = {"log_likelihood_right": -21.0, "log_likelihood_wrong": -21.0 - gap}
    save_generator(generator, tmp_path, {"steps_done": 51, "validation": figures})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        choose_generator(tmp_path, library, Constraints(1, 20), 0)
    assert len(told) == is_told
    if is_told:
        assert "has learned nothing in 51 steps: its own table makes a law 0.5 nats" in str(told[0].message)
