"""The guide in the search: weights of the random choices, and newcomers whose constants are fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import prior_weights
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import get_library
from dgsr.generator.generator import Generator
from dgsr.kernels import evolve as kernel
from dgsr.kernels.growth import choices_of, new_draft
from dgsr.kernels.random import new_state
from dgsr.search import Search, SearchConfig
from dgsr.search import evaluation as evaluation_module
from dgsr.search.evolution import EvolutionConfig, random_population
from dgsr.search.proposals import SHARES, guided_grammars
from searches import X, Y, assert_equal_populations, lively, rounds, tiny_guided_config, without_seconds

pytestmark = pytest.mark.search

TINY = tiny_guided_config(12)
LIMITS = Constraints(max_length=12)


def setting(preset="koza", n_variables=2, **limits):
    library = get_library(preset, n_variables)
    return library, Constraints(**limits).grammar(library)


def weighted(library, grammar, usual=1.0, **of_parents):
    """The grammar with these weights of children, by the names of their parents, and `usual` ones else."""
    weight = np.full_like(grammar.weight, usual)
    for parent, children in of_parents.items():
        at = len(library) if parent == "root" else library.index[parent]
        for child, value in children.items():
            weight[at, library.index[child]] = value
    return grammar._replace(weight=weight)


def texts(library, population):
    rows = zip(population.tokens, population.lengths, strict=True)
    return [" ".join(library.tokens[t].name for t in row[:n]) for row, n in rows]


def mutants(library, grammar, text, kind, n=2000, max_depth=1):
    """How often each result of one mutation of one program comes."""
    program = [library.index[name] for name in text.split()]
    tokens = np.zeros((1, grammar.max_length), dtype=np.int64)
    tokens[0, : len(program)] = program
    constants = np.ones((1, grammar.max_constants if library.has_constants else 0))
    population = Population(library, tokens, np.array([len(program)]), constants)
    choices, state = choices_of(grammar, constants.shape[1]), new_state(kind)
    draft = new_draft(grammar.max_length, constants.shape[1])
    result = {}
    for _ in range(n):
        if kernel.mutate(kind, population.arrays, 0, max_depth, draft, grammar, choices, state):
            found = " ".join(library.tokens[t].name for t in draft.tokens[: draft.counters[2]])
            result[found] = result.get(found, 0) + 1
    return result


# ---- growth and mutations ---------------------------------------------------------------------


def test_random_subtrees_follow_the_weights_of_child_and_parent():
    library, grammar = setting()
    weight = np.random.default_rng(0).uniform(0.1, 1.0, grammar.weight.shape) ** 2
    grammar = grammar._replace(weight=weight)
    population = random_population(20_000, library, grammar, new_state(0), 1, 1, full_share=1.0)
    n_operators = len(library.operators)
    roots = population.tokens[:, 0]
    expected = weight[-1, :n_operators] / weight[-1, :n_operators].sum()
    assert chisquare(np.bincount(roots, minlength=n_operators), len(roots) * expected).pvalue > 1e-3
    for root in range(n_operators):
        own = roots == root
        leaves = population.tokens[own, 1 : 1 + library.tokens[root].arity].ravel() - library.first_variable
        expected = weight[root, library.first_variable :]
        counts = np.bincount(leaves, minlength=2)
        assert chisquare(counts, counts.sum() * expected / expected.sum()).pvalue > 1e-4


def test_weights_may_leave_one_program_alone():
    library, grammar = setting()
    chain = {"root": {"mul": 1.0}, "mul": {"sin": 1.0}, "sin": {"x2": 1.0}}
    population = random_population(
        200, library, weighted(library, grammar, 1e-12, **chain), new_state(0), 2, 2, full_share=1.0
    )
    assert set(texts(library, population)) == {"mul sin x2 sin x2"}


@pytest.mark.slow
def test_replacement_weighs_the_parent_and_both_children():
    library, grammar = setting()
    grammar = weighted(
        library,
        grammar,
        root={"sub": 2.0, "mul": 3.0, "div": 1.0},
        sub={"x1": 0.5, "x2": 4.0},
        mul={"x1": 1.0, "x2": 0.25},
        div={"x1": 3.0, "x2": 2.0},
    )
    found = mutants(library, grammar, "add x1 x2", kernel.REPLACEMENT, 6000)
    counts = np.array([found[f"{operator} x1 x2"] for operator in ("sub", "mul", "div")])
    expected = np.array([2.0 * 0.5 * 4.0, 3.0 * 1.0 * 0.25, 1.0 * 3.0 * 2.0])
    assert chisquare(counts, counts.sum() * expected / expected.sum()).pvalue > 1e-3


def test_replacement_weighs_the_child_of_an_operator_of_one():
    library, grammar = setting()
    given = weighted(library, grammar, exp={"x1": 1.0}, cos={"x1": 5.0}, log={"x1": 2.0}, sin={"x1": 9.0})
    found = mutants(library, given, "exp x1", kernel.REPLACEMENT, 6000)
    counts = np.array([found[f"{operator} x1"] for operator in ("log", "cos", "sin")])
    assert chisquare(counts, counts.sum() * np.array([2.0, 5.0, 9.0]) / 16.0).pvalue > 1e-3


def test_insertion_weighs_the_parent_above_and_the_subtree_below():
    library, grammar = setting()
    above = dict.fromkeys(library.operators, 1e-09)
    below = {name: {"x1": 1e-9} for name in library.operators}
    below["log"], below["exp"] = {"x1": 4.0}, {"x1": 1.0}
    given = weighted(library, grammar, root=above | {"exp": 3.0, "log": 1.0}, **below)
    found = mutants(library, given, "x1", kernel.INSERTION, 4000)
    assert set(found) == {"exp x1", "log x1"}
    counts = np.array([found["exp x1"], found["log x1"]])
    assert chisquare(counts, counts.sum() * np.array([3.0, 4.0]) / 7.0).pvalue > 1e-3


def test_the_other_leaf_of_an_insertion_is_weighed_by_the_new_operator():
    library, grammar = setting()
    only = dict.fromkeys(library.operators, 1e-09) | {"mul": 1.0}
    given = weighted(library, grammar, root=only, mul={"x1": 1.0, "x2": 1e-9})
    found = mutants(library, given, "x1", kernel.INSERTION)
    assert set(found) == {"mul x1 x1"}


def test_new_subtrees_are_weighed_by_the_parent_they_get():
    library, grammar = setting()
    given = weighted(library, grammar, exp={"x1": 1e-9, "x2": 1.0}, root={"x1": 1.0, "x2": 1e-9})
    found = mutants(library, given, "exp x1", kernel.UNIFORM, max_depth=0)
    assert set(found) == {"exp x2", "x1"}


# ---- shares -----------------------------------------------------------------------------------


def probabilities_of(library, seed=0):
    drawn = np.random.default_rng(seed).uniform(0.01, 1.0, (len(library.operators) + 1, len(library)))
    return drawn / drawn.sum(axis=1, keepdims=True)


@settings(max_examples=20)
@given(st.sampled_from(["koza", "koza-const", "physics"]), st.integers(0, 2**31), st.integers(0, 10))
def test_weights_are_mixed_by_the_share_of_the_search(preset, seed, n_restarts):
    library, grammar = setting(preset)
    n, probabilities = len(library.operators), probabilities_of(library, seed)
    weight = guided_grammars(grammar, library, 3.0 * probabilities)[n_restarts % len(SHARES)].weight
    usual = prior_weights(grammar, library)
    share = SHARES[n_restarts % len(SHARES)]
    np.testing.assert_allclose(weight[:n], (1.0 - share) * usual[:n] + share * probabilities[:n], rtol=1e-12)
    np.testing.assert_allclose(weight[-1], (1.0 - share) * usual[-1] + share * probabilities[n], rtol=1e-12)
    np.testing.assert_allclose(weight[n:-1], usual[n:-1], rtol=1e-12)


def test_the_shares_come_again_after_the_last_one():
    search = small(guided_generator())
    weights = []
    for n in range(2 * len(SHARES)):
        search.restarts.n = n
        weights.append(search.proposals.grammar.weight)
    assert len({weight.tobytes() for weight in weights}) == len(SHARES) > 1
    for first, second in zip(weights, weights[len(SHARES) :], strict=False):
        np.testing.assert_array_equal(first, second)
    assert 0.0 < min(SHARES) <= max(SHARES) < 1.0


def test_no_allowed_token_is_without_weight_however_sure_the_guide_is():
    library = get_library("koza-const", 5)
    grammar = Constraints().grammar(library, 2)
    certain = np.zeros((len(library.operators) + 1, len(library)))
    certain[:, library.index["mul"]] = 1.0
    n_known = library.index["x3"]
    for weight in (guided.weight for guided in guided_grammars(grammar, library, certain)):
        assert (weight[:, :n_known] > 0.0).all()
        assert (weight[:, n_known:] == 0.0).all()
        np.testing.assert_allclose(weight.sum(axis=1), 1.0)


@pytest.mark.parametrize("preset", ["koza", "physics"])
def test_without_probabilities_the_weights_are_the_usual_ones(preset):
    library, grammar = setting(preset)
    for unguided in guided_grammars(grammar, library, None):
        np.testing.assert_array_equal(unguided.weight, prior_weights(grammar, library))


@pytest.mark.parametrize("preset", ["koza", "koza-const", "physics"])
@pytest.mark.parametrize("n_variables", [1, 3, 40])
def test_usual_weights_are_shares_of_the_tokens_that_may_occur(preset, n_variables):
    library = get_library(preset, 40)
    grammar = Constraints().grammar(library, n_variables)
    weights = prior_weights(grammar, library)
    n_known = library.first_variable + n_variables
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights[:, :n_known] > 0.0).all()
    assert (weights[:, n_known:] == 0.0).all()
    of_tokens = np.array([token.weight for token in library.tokens[:n_known]])
    of_tokens /= of_tokens.sum()
    if library.has_constants:  # half of each weight is that of the token, whatever the counts
        assert (weights[:, :n_known] > 0.5 * of_tokens - 1e-12).all()
        assert np.abs(weights[0] - weights[-1]).max() > 0.01  # under each parent its own
    else:
        np.testing.assert_allclose(weights[:, :n_known], np.tile(of_tokens, (len(weights), 1)))


# ---- the search -------------------------------------------------------------------------------


def guided_generator(library="koza", seed=0):
    """A generator with a guide, whose weights are as large as training makes them."""
    made = Generator.untrained(get_library(library, 2), TINY, LIMITS, 0).eval()
    lively(made.encoder, seed)
    lively(made.guide, seed)
    return made


def small(generator, *, library="koza", seed=0, engine="compiled", generations=2, **config):
    config = {"batch_size": 40, "max_evaluations": 10**9, "look_up": False, **config}
    config = SearchConfig(evolution=EvolutionConfig(generations=generations), **config)
    return Search(DataSet.from_arrays(X, Y), get_library(library, 2), LIMITS, config, generator, engine, seed)


KINDS = {"koza": {"batch_size": 20}, "koza-const": {"batch_size": 16, "survivors": 0.5}}


@pytest.mark.parametrize("library", KINDS)
def test_a_guided_search_is_reproducible_and_goes_on_where_it_was_saved(library):
    def made():
        return small(guided_generator(library), library=library, patience=0, **KINDS[library])

    whole, again, resumed = made(), made(), made()
    whole.restarts.n = again.restarts.n = 1
    assert (whole.proposals.grammar.weight != resumed.proposals.grammar.weight).any()
    rounds(whole, 4)
    resumed.load_state_dict(rounds(again, 2).state_dict())
    for other in (rounds(again, 2), rounds(resumed, 2)):
        assert without_seconds(other.history) == without_seconds(whole.history)
        assert_equal_populations(other.archive.population(), whole.archive.population())
        assert_equal_populations(other.generation.programs, whole.generation.programs)
        np.testing.assert_array_equal(other.proposals.grammar.weight, whole.proposals.grammar.weight)
    assert_equal_populations(resumed.ask(), whole.ask())


def test_the_guide_changes_what_is_searched():
    plain = guided_generator()
    without = plain.refinable_copy()
    without.guide = None
    searches = [rounds(small(made, random_share=0.5), 1) for made in (plain, without)]
    assert_equal_populations(*(small(made, random_share=0.0).ask() for made in (plain, without)))
    assert without_seconds(searches[0].history) != without_seconds(searches[1].history)
    np.testing.assert_array_equal(
        searches[1].proposals.grammar.weight, prior_weights(searches[1].grammar, plain.library)
    )


@pytest.mark.parametrize(
    ("library", "refine", "every", "steps"),
    [
        ("koza", "auto", 1, 2),
        ("koza-const", "auto", 1, 2),
        ("koza-const", "auto", 10**9, 0),
        ("koza-const", True, 10**9, 2),
        ("koza", True, 10**9, 2),
        ("koza", False, 1, 0),
    ],
)
def test_a_guided_decoder_writes_in_every_round_and_is_refined_when_a_step_is_due(
    library, refine, every, steps, monkeypatch
):
    monkeypatch.setattr("dgsr.search.evaluation.Plain.refined_every", every)
    monkeypatch.setattr("dgsr.search.evaluation.Fitted.refined_every", every)
    search = small(guided_generator(library), library=library, batch_size=20, refine=refine, patience=0)
    sampled, sample = [], search.conditioned.sample
    monkeypatch.setattr(search.conditioned, "sample", lambda n, *rest: sampled.append(n) or sample(n, *rest))
    search._evaluate_first()
    assert sampled == [20]
    rounds(search, 2)
    assert len(sampled) == 3
    assert min(sampled) > 0
    assert search.conditioned.n_steps == steps
    assert search.history[-1]["refinements"] == steps


def test_a_guided_decoder_stays_near_the_pre_trained_one_over_restarts(monkeypatch):
    monkeypatch.setattr("dgsr.search.evaluation.Plain.refined_every", 1)
    made = guided_generator()
    search = small(made, batch_size=20, patience=1)
    rounds(search, 6)
    assert search.restarts.n > 0
    assert search.conditioned.n_steps == 6
    samples = made.sample_encoded(search.conditioned.encoding, 400, search.grammar, new_state(7))
    programs = samples.tokens, samples.lengths
    before, after = (
        network.log_probs(search.conditioned.encoding, *programs, search.grammar).programs.detach()[0]
        for network in (made, search.conditioned.generator)
    )
    # The mean over samples of log p - log q is the divergence of the refined q from the pre-trained p.
    assert 0.1 < float((before - after).mean()) < 0.4


def test_a_search_with_a_decoder_in_its_trust_region_goes_on_as_it_would(monkeypatch):
    monkeypatch.setattr("dgsr.search.evaluation.Fitted.refined_every", 1)
    settings = {"library": "koza-const", "batch_size": 20}
    whole = rounds(small(guided_generator("koza-const"), **settings), 4)
    resumed = small(guided_generator("koza-const"), **settings)
    resumed.load_state_dict(rounds(small(guided_generator("koza-const"), **settings), 2).state_dict())
    rounds(resumed, 2)
    assert without_seconds(resumed.history) == without_seconds(whole.history)
    assert_equal_populations(resumed.ask(), whole.ask())


def test_a_guided_decoder_is_refined_where_no_evolution_can_follow_the_guide(monkeypatch):
    search = small(guided_generator(), batch_size=20, generations=0, patience=0)
    refined = []
    monkeypatch.setattr(search.conditioned, "refine", lambda *_: refined.append(1))
    rounds(search, 2)
    assert len(refined) == 2


@pytest.mark.parametrize("refine", ["auto", True])
def test_without_a_guide_the_decoder_is_refined(refine, monkeypatch):
    rows = replace(TINY, encoder="rows", target="standardised")
    plain = Generator.untrained(get_library("koza-const", 2), rows, LIMITS, 0).eval()
    search = small(plain, library="koza-const", batch_size=20, refine=refine, patience=0)
    refined = []
    monkeypatch.setattr(search.conditioned, "refine", lambda *_: refined.append(1))
    rounds(search, 2)
    assert len(refined) == 2


def test_the_guide_reads_the_rows_that_the_decoder_reads(monkeypatch):
    made = guided_generator()
    read = []
    real = made.guide_probabilities
    monkeypatch.setattr(made, "guide_probabilities", lambda encoding: read.append(encoding) or real(encoding))
    monkeypatch.setattr(made, "encode_dataset", lambda *given: read.append(given) or encode(*given))
    encode = type(made).encode_dataset.__get__(made)
    search = small(made, seed=7)
    (_, _, seed), encoding = read  # the data are read once
    assert seed == 7
    assert encoding is search.conditioned.encoding
    expected = guided_grammars(search.grammar, made.library, real(encoding))[0]
    np.testing.assert_array_equal(search.proposals.grammar.weight, expected.weight)


class Recording:
    """An engine that keeps the programs as they are, and the grammars that it gets."""

    def __init__(self):
        self.weights = []

    def evolve(self, population, nmse, evaluate, grammar, state, should_stop):
        self.weights.append(grammar.weight)
        return population, nmse


def test_programs_are_grown_and_evolved_by_the_weights_of_the_guide(monkeypatch):
    made = guided_generator()
    library = made.library
    certain = np.full((len(library.operators) + 1, len(library)), 1e-6)
    certain[-1, library.index["cos"]] = certain[:-1, library.index["x2"]] = 1.0
    certain /= certain.sum(axis=1, keepdims=True)
    monkeypatch.setattr(made, "guide_probabilities", lambda encoding: certain)
    search = small(made, engine=Recording(), batch_size=400, random_share=1.0, patience=1, gain=0.0)
    expected = guided_grammars(search.grammar, library, certain)
    for n in range(2):
        search.restarts.n = n
        sampled = search.ask()
        roots = sampled.tokens[:, 0] == library.index["cos"]
        # Half of the trees are full: their roots are operators, and cos has its share among them or more.
        assert SHARES[n] - 0.1 < roots.mean() < SHARES[n] + 0.15
        search.tell(sampled)
        np.testing.assert_array_equal(search.engine.weights[n], expected[n].weight)


# ---- newcomers --------------------------------------------------------------------------------


def with_constants(n):
    """`n` programs mul x1 sin add x2 const, or without a constant where n leaves 3 when divided by 4."""
    library = get_library("koza-const", 2)
    tokens = np.zeros((n, LIMITS.max_length), dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    for b in range(n):
        text = "mul x1 x2" if b % 4 == 3 else "mul x1 sin add x2 const"
        ids = [library.index[name] for name in text.split()]
        tokens[b, : len(ids)], lengths[b] = ids, len(ids)
    constants = np.ones((n, LIMITS.max_constants))
    constants[:, 0] = np.linspace(0.1, 3.0, n)
    return Population(library, tokens, lengths, constants)


def recorded_fits(monkeypatch):
    """The constants before each fit of programs of a population, and whether it has a second start."""
    real, fits = evaluation_module.fit_constants, []

    def recording(population, data, **options):
        if options.get("n_iterations") and options.get("scaled", True):
            fits.append((population.constants[:, 0].tolist(), options["second_start"]))
        return real(population, data, **options)

    monkeypatch.setattr(evaluation_module, "fit_constants", recording)
    return fits


@pytest.mark.parametrize("n_new", [0, 7, 20])
def test_the_constants_of_newcomers_are_all_fitted_and_of_others_those_of_the_best(monkeypatch, n_new):
    search = small(None, library="koza-const", fit_share=0.3)
    population = with_constants(20)
    before = population.constants[:, 0].copy()
    real = evaluation_module.fit_constants
    scaled = real(with_constants(20), search.data, n_iterations=0).nmse
    fits = recorded_fits(monkeypatch)
    nmse = search.evaluate(population, n_new)
    has = np.arange(20) % 4 != 3
    newcomers, others = (
        np.flatnonzero(has & side) for side in (np.arange(20) < n_new, np.arange(20) >= n_new)
    )
    others = others[np.argsort(scaled[others], kind="stable")][: int(np.ceil(0.3 * len(others)))]
    found = {False: [], True: []}
    for constants, second_start in fits:
        found[second_start] += constants
    assert found[True] == before[newcomers].tolist()
    new = with_constants(20)[newcomers]
    settings = {"n_iterations": search.config.fit_iterations, "second_start": True, "state": new_state(0)}
    order = np.argsort(real(new, search.data, **settings).nmse, kind="stable")
    best = new.constants[order[: int(np.ceil(0.3 * len(new)))], 0]
    assert found[False] == [*best, *before[others]]
    fitted = np.union1d(newcomers, others)
    assert (population.constants[fitted, 0] != before[fitted]).all()
    left = np.setdiff1d(np.arange(20), fitted)
    np.testing.assert_array_equal(population.constants[left, 0], before[left])
    np.testing.assert_array_equal(nmse[left], scaled[left])
    assert (nmse[fitted] <= scaled[fitted]).all()


def test_newcomers_are_all_but_the_survivors_and_none_in_the_first_round(monkeypatch):
    search = small(
        guided_generator("koza-const"), library="koza-const", batch_size=20, survivors=0.6, patience=0
    )
    asked = []
    real = search.evaluate
    monkeypatch.setattr(
        search, "evaluate", lambda p, n_new=0: asked.append((len(p), n_new)) or real(p, n_new)
    )
    search.tell(search.ask())
    assert asked[0] == (20, 0)
    assert {n for _, n in asked} == {0}  # what evolves is not new
    asked.clear()
    sampled = search.ask()
    survivors = search.generation.best(12).programs
    n_new = 20 - len(survivors)
    assert 8 <= n_new < 20
    assert_equal_populations(sampled[n_new:], survivors)
    search.tell(sampled)
    assert asked[0] == (20, n_new)
    assert {n for _, n in asked[1:]} == {0}


def test_programs_beyond_the_budget_are_not_fitted_though_new():
    search = small(None, library="koza-const", max_evaluations=6)
    population = with_constants(20)
    before = population.constants.copy()
    nmse = search.evaluate(population, 20)
    assert np.isfinite(nmse[:6]).all()
    assert np.isinf(nmse[6:]).all()
    np.testing.assert_array_equal(population.constants[6:], before[6:])
    assert (population.constants[[0, 1, 2, 4, 5], 0] != before[[0, 1, 2, 4, 5], 0]).all()
