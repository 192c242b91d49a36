"""Algorithm 2 as ask and tell: counting, resuming, refining, and the archive of the best."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from dgsr.constants.fitting import fit_constants
from dgsr.constants.scaling import written_out
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.exact_search import ExactSolver
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.finders.budget import _USUAL_LENGTH, Budget
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.search import OBJECTIVES, Search, SearchConfig, run
from dgsr.search.evolution import EvolutionConfig, random_population
from searches import X, Y, assert_equal_populations, log_prob, rounds, without_seconds

pytestmark = pytest.mark.search

LIMITS = Constraints(max_length=12)


def tiny_generator(library="koza", n_variables=2):
    config = GeneratorConfig(
        encoder_width=16,
        encoder_heads=2,
        encoder_layers=1,
        n_inducing=4,
        n_latents=2,
        decoder_width=16,
        decoder_heads=2,
        decoder_layers=1,
        tree_embedding=8,
        max_length=12,
    )
    return Generator.untrained(get_library(library, n_variables), config, LIMITS, seed=0)


def small(generator="tiny", *, library="koza", y=Y, seed=0, engine="compiled", generations=2, **config):
    if generator == "tiny":
        generator = tiny_generator(library)
    config = {"batch_size": 60, "max_evaluations": 10**9, **config}
    config = SearchConfig(evolution=EvolutionConfig(generations=generations), **config)
    data = DataSet.from_arrays(X, y)
    return Search(data, get_library(library, 2), LIMITS, config, generator, engine, seed)


def programs_of(population):
    return [tuple(row[:length]) for row, length in zip(population.tokens, population.lengths)]


def draw(n, seed=0, library="koza"):
    tokens = get_library(library, 2)
    return random_population(n, tokens, LIMITS.grammar(tokens), new_state(seed))


# --- rounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", ["tiny", None])
@pytest.mark.parametrize("engine", ["compiled", "deap"])
def test_ask_and_tell_make_a_search(generator, engine):
    search = small(generator, engine=engine, max_evaluations=1000, look_up=False)
    while not search.stop_reason():
        search.tell(search.ask())
    assert search.stop_reason() == "max_evaluations"
    assert search.n_evaluations == 1000
    assert search.archive.best_nmse() < 1.0
    assert search.history[-1]["best_nmse"] == search.archive.best_nmse()


@pytest.mark.parametrize("generator", ["tiny", None])
def test_run_reports_after_every_round_and_says_why_it_ended(generator):
    reported = []
    search = small(generator, y=X[:, 0] * X[:, 1])
    assert run(search, lambda s: reported.append(s.n_evaluations)) == "exact fit"
    assert reported == [entry["evaluations"] for entry in search.history]


def with_the_law(population):
    """The same programs, but one is x1*x2."""
    index = population.library.index
    population.tokens[7], population.lengths[7] = 0, 3
    population.tokens[7, :3] = index["mul"], index["x1"], index["x2"]
    return population


def test_a_law_that_the_generator_thinks_of_first_takes_a_glance(monkeypatch):
    search = small(y=X[:, 0] * X[:, 1])
    search.scheduler.exact = None
    drawn = with_the_law(draw(9))
    asked = []
    monkeypatch.setattr(search.proposals, "sampled", lambda n, *_: asked.append(n) or drawn)
    assert run(search) == "exact fit"
    assert asked == [50]
    assert search.n_evaluations == 9
    assert len(search.history) == 1
    assert str(search.archive.population()[-1]) == "x1*x2"


def test_a_round_whose_samples_hold_the_law_breeds_no_more():
    search = small(y=X[:, 0] * X[:, 1])
    search.engine = None  # would fail if it were asked
    search.tell(with_the_law(draw(300)))
    assert search.stop_reason() == "exact fit"
    assert search.n_evaluations == 300


def test_evaluations_are_counted_one_by_one(monkeypatch):
    counted = 0
    nmse = Population.nmse

    def counting(population, *data):
        nonlocal counted
        counted += len(population)
        return nmse(population, *data)

    monkeypatch.setattr(Population, "nmse", counting)
    search = rounds(small(), 3)
    assert search.n_evaluations == counted > 0
    search = small(None, max_evaluations=333, look_up=False)
    counted = 0
    assert run(search) == "max_evaluations"
    assert search.n_evaluations == counted == 333


def test_programs_beyond_the_budget_are_not_evaluated():
    search = small(None, max_evaluations=10, look_up=False)
    population = draw(25)
    nmse = search.evaluate(population)
    np.testing.assert_array_equal(nmse[:10], population[:10].nmse(X, Y))
    assert np.isinf(nmse[10:]).all()
    assert search.n_evaluations == 10
    assert search.budget.n_invalid == np.isinf(nmse[:10]).sum()


@pytest.mark.parametrize("at_once", [1, 7, 10])
def test_evaluating_few_programs_at_a_time_changes_nothing(monkeypatch, at_once):
    def state():
        search = small(None, batch_size=20, max_evaluations=50, look_up=False)
        run(search)
        return search.archive.state_dict(), without_seconds(search.history)

    archive, history = state()
    monkeypatch.setattr("dgsr.finders.budget._CHUNK", at_once * _USUAL_LENGTH * len(X))
    other, other_history = state()
    assert history == other_history
    for name in archive:
        np.testing.assert_array_equal(archive[name], other[name])


def test_constants_are_fitted_alike_however_many_programs_are_evaluated_at_a_time(monkeypatch):
    """What enters the archive may differ: a program is written out if it betters what is there."""

    def state():
        settings = {"batch_size": 20, "max_evaluations": 50, "patience": 0, "look_up": False}
        search = small(None, library="koza-const", **settings)
        run(search)
        return search

    whole = state()
    monkeypatch.setattr("dgsr.finders.budget._CHUNK", 7 * _USUAL_LENGTH * len(X))
    parts = state()
    assert_equal_populations(whole.generation.programs, parts.generation.programs)
    np.testing.assert_array_equal(whole.generation.nmse, parts.generation.nmse)
    assert parts.archive.best_nmse() <= parts.generation.nmse.min()


@pytest.mark.parametrize("at_once", [32, 64])
def test_sampling_few_programs_at_a_time_changes_nothing(monkeypatch, at_once):
    settings = {"batch_size": 150, "random_share": 0.0}
    monkeypatch.setattr("dgsr.search.conditioned._SAMPLED_AT_ONCE", 150)
    expected = small(**settings).ask()
    monkeypatch.setattr("dgsr.search.conditioned._SAMPLED_AT_ONCE", at_once)
    assert_equal_populations(small(**settings).ask(), expected)


def test_sampling_out_of_time_draws_no_more(monkeypatch):
    search = small(batch_size=500, random_share=0.0)
    monkeypatch.setattr(search, "stop_reason", lambda: "max_time")
    assert len(search.ask()) == 128


def test_with_constants_a_round_goes_on_after_an_exact_fit_and_ends_with_the_time(monkeypatch):
    library = get_library("physics", 2)
    config = SearchConfig(max_time=100.0, batch_size=20)
    search = Search(DataSet.from_arrays(X, X[:, 0] * X[:, 1]), library, Constraints(), config, None)
    search.enter(Population.from_expressions([Expression.from_text("x1*x2", library)]))
    assert search.stop_reason() == "exact fit"
    assert not search.should_stop()
    monkeypatch.setattr(Budget, "seconds", property(lambda budget: 101.0))
    assert search.should_stop()


def test_a_stage_in_the_large_bank_ends_with_the_time(monkeypatch):
    search = small(None)
    search.scheduler.exact.solver = ExactSolver(search.library, search.data, search.grammar, size=256)
    asked = []

    def stop_reason():
        asked.append(True)
        return "max_time" if len(asked) > 3 else None

    monkeypatch.setattr(search, "stop_reason", stop_reason)
    search.solve_further()
    assert len(asked) == 4  # once before the stage, and in it


def test_solving_leaves_half_of_the_time_for_rounds(monkeypatch):
    class Endless:
        n_stages, n_examined = 2, 0

        def solve(self, stage, should_stop):
            while not should_stop():
                pass
            return draw(0)

    search = small(None, max_time=100.0)
    search.scheduler.exact.solver = Endless()
    clock = itertools.count()
    monkeypatch.setattr(Budget, "seconds", property(lambda budget: float(next(clock))))
    search.solve_further()
    assert 50.0 < search.seconds < 60.0


def test_an_evaluation_out_of_time_counts_what_it_evaluated(monkeypatch):
    search = small(None, max_time=10.0)
    monkeypatch.setattr("dgsr.finders.budget._CHUNK", 5 * _USUAL_LENGTH * len(X))
    clock = iter([3.0, 6.0, 9.0, 12.0])
    monkeypatch.setattr(Budget, "seconds", property(lambda budget: next(clock)))
    population = draw(40)
    nmse = search.evaluate(population)
    assert search.n_evaluations == 20
    np.testing.assert_array_equal(nmse[:20], population[:20].nmse(X, Y))
    assert np.isinf(nmse[20:]).all()
    assert search.archive.best_nmse() == nmse.min()


def test_an_interrupted_evaluation_counts_what_it_evaluated(monkeypatch):
    search = small(None)
    monkeypatch.setattr("dgsr.finders.budget._CHUNK", 5 * _USUAL_LENGTH * len(X))
    population, calls, real = draw(40), [], Population.nmse

    def interrupted(chunk, data):
        calls.append(len(chunk))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(chunk, data)

    monkeypatch.setattr(Population, "nmse", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.evaluate(population)
    assert calls == [5] * 4
    assert search.n_evaluations == 15
    assert search.archive.best_nmse() == real(population[:15], search.data).min()


def test_a_loss_beyond_a_float_is_infinite_without_a_warning():
    assert np.isinf(draw(5).nmse(X, 1e-158 * Y)).all()


def test_losses_without_a_target_are_refused():
    with pytest.raises(ValueError, match="y is missing; give X and y"):
        draw(5).nmse(X)


MILLION_ROWS = """
import resource, sys, time
import numpy as np
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.data.dataset import DataSet
from dgsr.search import Search, SearchConfig, run

def search(n_rows, max_time):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (n_rows, 2))
    y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])
    config = SearchConfig(max_time=max_time, max_evaluations=10**9, look_up=False)
    return Search(DataSet.from_arrays(X, y), get_library("koza", 2), Constraints(), config, None)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

run(search(10, 0.2))  # compiles
large = search(10**6, 1.0)
before = peak()
run(large)
print(large.seconds, large.n_evaluations, large.archive.best_nmse(), peak() - before)
"""


def test_programs_are_written_out_with_an_eye_on_the_clock(monkeypatch):
    written = []

    def counted(population, fit, data):
        written.append(len(population))
        return written_out(population, fit, data)

    monkeypatch.setattr("dgsr.search.evaluation.written_out", counted)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20_000, 2))
    library = get_library("koza-const", 2)
    config = SearchConfig(max_evaluations=10**9, look_up=False)
    search = Search(DataSet.from_arrays(X, X[:, 0] / X[:, 1]), library, LIMITS, config, None)
    population = random_population(200, library, search.grammar, search.state)
    fit = fit_constants(population, search.data, n_iterations=0)
    search.budget.max_time = 0.0
    entries, nmse = search.evaluation._entries(population, fit)
    assert sum(written) <= 2  # one part: there is no time for another
    assert len(entries) == len(nmse) > 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no module resource")
def test_a_million_rows_are_searched_within_the_time_and_without_copies_of_them():
    done = subprocess.run([sys.executable, "-c", MILLION_ROWS], capture_output=True, text=True, check=True)
    seconds, n_evaluations, best_nmse, megabytes = map(float, done.stdout.split())
    assert 1.0 <= seconds < 3.0
    assert n_evaluations >= 1
    assert best_nmse < np.inf
    assert megabytes < 50.0  # the rows themselves are 16


@pytest.mark.parametrize("library", ["koza", "koza-const"])
def test_without_a_generator_random_programs_take_the_places_of_the_samples(library):
    search = rounds(small(None, library=library, batch_size=20, survivors=0.9, patience=0), 1)
    survivors = search.generation.best(18).programs  # fewer where programs are alike
    asked = search.ask()
    assert len(asked) == 20
    assert 2 <= len(survivors) <= 18
    assert_equal_populations(asked[np.arange(20 - len(survivors), 20)], survivors)


@pytest.mark.parametrize("generator", ["tiny", None])
def test_another_seed_is_another_search(generator):
    a, b, other = (rounds(small(generator, seed=seed), 2) for seed in (3, 3, 4))
    assert without_seconds(a.history) == without_seconds(b.history)
    assert_equal_populations(a.ask(), b.ask())
    assert without_seconds(a.history) != without_seconds(other.history)


# --- stopping and going on ------------------------------------------------------------------------


RESUMED = {
    "pqt": {},
    "risk-seeking": {"objective": "risk-seeking"},
    "vpg": {"objective": "vpg"},
    "no generator": {"generator": None},
    "DEAP": {"engine": "deap"},
    "constants": {"library": "koza-const", "batch_size": 10},
}


@pytest.mark.parametrize("settings", RESUMED.values(), ids=RESUMED)
def test_a_resumed_search_is_the_uninterrupted_one(settings):
    whole = rounds(small(**settings), 4)
    resumed = small(**{**settings, "seed": 99})
    resumed.load_state_dict(rounds(small(**settings), 2).state_dict())
    assert_goes_on_as(whole, rounds(resumed, 2))


def test_a_state_can_be_loaded_more_than_once():
    state = rounds(small(), 2).state_dict()
    for _ in range(2):
        resumed = small()
        resumed.load_state_dict(state)
        assert_goes_on_as(rounds(small(), 4), rounds(resumed, 2))


def assert_goes_on_as(whole, resumed):
    """Everything so far is the same, and so is the next batch."""
    assert without_seconds(resumed.history) == without_seconds(whole.history)
    assert_equal_populations(resumed.archive.population(), whole.archive.population())
    assert_equal_populations(resumed.queue.programs, whole.queue.programs)
    np.testing.assert_array_equal(resumed.queue.nmse, whole.queue.nmse)
    assert_equal_populations(resumed.ask(), whole.ask())


def test_a_state_is_not_changed_by_going_on():
    search = rounds(small(patience=0), 2)
    state = search.state_dict()

    def weights():
        return np.concatenate([array.ravel() for array in state["refinement"]["decoder"].values()])

    def moments():
        return np.concatenate([m["exp_avg"].ravel() for m in state["refinement"]["optimizer"].values()])

    before = weights(), moments()
    nmse, seed = state["archive"]["nmse"].copy(), state["random_state"].copy()
    rounds(search, 2)
    assert all(map(np.array_equal, (weights(), moments()), before))
    np.testing.assert_array_equal(state["archive"]["nmse"], nmse)
    np.testing.assert_array_equal(state["random_state"], seed)
    assert len(state["history"]) == 2


def test_a_resumed_search_counts_the_earlier_seconds():
    search = rounds(small(None, max_time=1e6), 1)
    state = search.state_dict()
    state["budget"]["seconds"] = 2e6
    resumed = small(None, max_time=1e6)
    assert resumed.stop_reason() is None
    resumed.load_state_dict(state)
    assert resumed.stop_reason() == "max_time"


# --- refining -------------------------------------------------------------------------------------


def test_the_decoder_is_refined_and_the_encoder_is_not():
    generator = tiny_generator()
    given = {name: tensor.clone() for name, tensor in generator.state_dict().items()}
    search = rounds(small(generator), 3)
    refined = search.conditioned.generator.state_dict()
    assert all(torch.equal(refined[name], given[name]) for name in given if name.startswith("encoder."))
    assert any(not torch.equal(refined[name], given[name]) for name in given if name.startswith("decoder."))
    assert all(torch.equal(tensor, given[name]) for name, tensor in generator.state_dict().items())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_gradient_of_parts_is_that_of_the_whole(objective, monkeypatch):
    def gradients(at_once):
        monkeypatch.setattr("dgsr.search.conditioned._REFINED_AT_ONCE", at_once)
        search = rounds(small(objective=objective, epsilon=0.5), 1)
        return [parameter.grad for parameter in search.conditioned.generator.decoder.parameters()]

    for of_parts, of_whole in zip(gradients(7), gradients(10**6), strict=True):
        torch.testing.assert_close(of_parts, of_whole, rtol=1e-3, atol=1e-6)


def test_a_step_that_is_out_of_time_is_not_taken(monkeypatch):
    search = small(objective="vpg")
    sampled = search.ask()
    given = [parameter.clone() for parameter in search.conditioned.generator.decoder.parameters()]
    monkeypatch.setattr("dgsr.search.conditioned._REFINED_AT_ONCE", 7)
    search.conditioned.refine(search.queue.programs, sampled, np.ones(len(sampled)), 0, lambda: True)
    assert all(map(torch.equal, search.conditioned.generator.decoder.parameters(), given))


def test_nothing_is_refined_when_not_asked():
    search = rounds(small(refine=False), 2)
    given = tiny_generator().state_dict()
    assert all(
        torch.equal(tensor, given[name]) for name, tensor in search.conditioned.generator.state_dict().items()
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_refining_makes_good_programs_likelier(objective):
    settings = {"generations": 0, "patience": 0, "epsilon": 0.1, "learning_rate": 0.01, "seed": 1}
    search = small(objective=objective, **settings)
    population = search.conditioned.generator.population(*_tokens(search.ask()))
    nmse = population.nmse(X, Y)
    order = np.argsort(nmse)
    good, bad = population[order[:5]], population[order[-20:]]

    def gap():
        nats = [log_prob(search.conditioned.generator, programs, X, Y).mean() for programs in (good, bad)]
        return nats[0] - nats[1]

    before = gap()
    for _ in range(10):
        search.tell(population)
    assert gap() > before + 0.1


def _tokens(population):
    return population.tokens, population.lengths


def test_the_queue_holds_the_best_different_programs_of_all_rounds(monkeypatch):
    search = small(queue_size=10, generations=0, patience=0)
    seen = {}
    for _ in range(4):
        asked = search.ask()
        for program, nmse in zip(programs_of(asked), asked.nmse(X, Y)):
            seen[program] = nmse
        search.tell(asked)
    best = sorted(nmse for nmse in seen.values() if np.isfinite(nmse))[:10]
    np.testing.assert_array_equal(search.queue.nmse, best)
    queue = programs_of(search.queue.programs)
    assert len(set(queue)) == 10
    assert [seen[program] for program in queue] == best


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_round_of_programs_without_finite_values_is_survived(objective):
    search = small(objective=objective, generations=0)
    library = search.library
    tokens = np.zeros((3, 12), dtype=np.int64)
    tokens[:, :4] = [library.index[name] for name in ("log", "sub", "x1", "x1")]
    search.tell(Population(library, tokens, np.full(3, 4), np.ones((3, 0))))
    assert search.budget.n_invalid == 3
    assert search.archive.best_nmse() == np.inf
    assert len(search.queue.programs) == 0
    rounds(search, 2)
    assert np.isfinite(search.archive.best_nmse())


# --- constants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["compiled", "deap"])
@pytest.mark.parametrize("text", ["add mul const x1 const", "x1"])
def test_constants_are_fitted_to_the_least_squares_ones(engine, text):
    y = 2.5 * X[:, 0] + 1.25 + 0.01 * np.random.default_rng(0).normal(size=len(X))
    search = small(None, library="koza-const", y=y, engine=engine, batch_size=100, generations=0)
    library = search.library
    program = [library.index[name] for name in text.split()]
    first = draw(1, library="koza-const")
    first.tokens[0], first.lengths[0] = 0, len(program)
    first.tokens[0, : len(program)] = program
    search.tell(first)
    (a, b), _ = curve_fit(lambda x, a, b: a * x + b, X[:, 0], y)
    least = np.mean((y - a * X[:, 0] - b) ** 2) / y.var()
    assert search.generation.nmse[0] == pytest.approx(least, rel=1e-9)
    # Scale and offset are written out, and not twice.
    archived = search.archive.population()
    line = [library.index[name] for name in ("add", "mul", "const", "x1", "const")]
    assert programs_of(archived)[-1] == tuple(line)
    assert search.archive.best_nmse() == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(archived.constants[-1, :2], [a, b], rtol=1e-6)


def test_archived_constants_give_the_archived_loss():
    search = rounds(small(library="koza-const", batch_size=20), 2)
    archive = search.archive
    population = archive.population()
    assert len(population) > 2
    np.testing.assert_allclose(population.nmse(X, Y), archive.nmse[archive.front()], rtol=1e-9)


# --- the best of many -----------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from([0.5, 1.0, 1.5, np.inf]), min_size=1, max_size=30),
    st.integers(0, 5),
    st.integers(0, 9),
)
def test_the_best_are_what_sorting_gives(losses, n, seed):
    population = draw(12, seed)[np.random.default_rng(seed).integers(12, size=len(losses))]
    by_program = dict(zip(programs_of(population), losses))
    nmse = np.array([by_program[program] for program in programs_of(population)])
    kept, kept_nmse = Scored(population, nmse).best(n)
    finite = {program: loss for program, loss in by_program.items() if np.isfinite(loss)}
    expected = sorted((loss, len(program)) for program, loss in finite.items())[:n]
    assert list(zip(kept_nmse, kept.lengths)) == expected
    assert [by_program[program] for program in programs_of(kept)] == list(kept_nmse)
    assert len(set(programs_of(kept))) == len(kept)


# --- the rounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["koza", "koza-const"])
def test_a_round_begins_with_samples_random_programs_and_survivors(library):
    search = small(library=library, survivors=0.5, random_share=0.5, patience=0)
    first = search.ask()
    assert len(first) == 60
    search.tell(first)
    best = np.unique(np.sort(search.generation.nmse))[:5]
    again = search.ask()
    assert len(again) == 60
    kept = {(*row[:n],) for row, n in zip(again.tokens, again.lengths)}
    order = np.argsort(search.generation.nmse)[:5]
    generation = search.generation.programs
    for i in order:
        assert (*generation.tokens[i, : generation.lengths[i]],) in kept
    assert np.isfinite(best).all()


def test_without_survivors_every_round_is_sampled_anew():
    search = small(survivors=0.0, random_share=0.9)
    rounds(search, 1)
    state = search.state.copy()
    asked = search.ask()
    samples = search.conditioned.generator.sample_encoded(
        search.conditioned.encoding, 6, search.grammar, state
    )
    np.testing.assert_array_equal(asked.tokens[:6], samples.tokens)
    assert len(asked) == 60  # the others are random


def test_the_mean_of_y_is_the_first_entry_of_the_archive():
    search = small(None, library="koza-const")
    front = search.archive.population()
    assert [front.library.tokens[t].name for t in front.tokens[0, : front.lengths[0]]] == ["const"]
    assert front.constants[0, 0] == pytest.approx(Y.mean())
    assert search.archive.best_nmse() == pytest.approx(1.0)
