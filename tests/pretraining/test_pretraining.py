"""Pre-training: a generator learns to read its data, and a run that was interrupted is the same run."""

from __future__ import annotations

import itertools
import json
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from dgsr.constants.fitting import Fit
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library, get_library
from dgsr.generator.checkpoints import CARD, CURVES, load_generator, read_tensors, write_tensors
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.encoding import Encoding
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.pretraining import (
    OBJECTIVES,
    PRETRAINING_CONFIGS,
    PretrainingConfig,
    Trainer,
    conditioning_gap,
    pretrain,
    training_state,
)
from dgsr.pretraining import run as run_module
from dgsr.pretraining import trainer as trainer_module
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.curves import to_svg
from dgsr.pretraining.decontamination import (
    benchmark_decontamination,
    comparable,
    leave_out,
    nothing_held_out,
)
from dgsr.pretraining.prior import DrawnDataSets, Prior
from dgsr.pretraining.stream import Batch, Stream
from dgsr.problems import list_sets, load_problem, load_set
from searches import measure_few_programs, tiny_guided_config, whole_run

pytestmark = pytest.mark.search

TINY = GeneratorConfig(
    encoder_width=16, encoder_heads=2, encoder_layers=1, n_inducing=4, n_latents=2,
    tree_embedding=4, tree_layers=1, decoder_width=16, decoder_heads=2, decoder_layers=1, max_length=8,
)  # fmt: skip
LIBRARY = Library("mine", ("add", "mul"), False, 2)
PRIOR = Prior(min_leaves=2, max_leaves=3)
NOTHING = leave_out(np.array([[1.2, 1.9, 2.4], [2.2, 1.1, 2.9]]), np.empty((0, 3)))


def written(library, *programs, width):
    tokens = np.zeros((len(programs), width), dtype=np.int64)
    lengths = np.array([len(program.split()) for program in programs])
    for b, program in enumerate(programs):
        tokens[b, : lengths[b]] = [library.index[name] for name in program.split()]
    return Population(library, tokens, lengths, np.ones((len(programs), 0)))


# The toy case: two data sets, each with its own answer.


def answers_after_training(assign=None, steps=150, k=40, seed=0, wrong_latents=False):
    """P(right program | own data) of two data sets after vanilla policy gradient on both.

    `assign` chooses, for the programs in the order they were sampled, which data set's reward each
    is given; None is the trainer's own way.
    """
    library = Library("toy", ("add", "mul"), False, 1)
    truths = written(library, "add x1 x1", "mul x1 x1", width=3)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (2, 20, 1))
    y = np.stack([truths[j : j + 1].predict(X[j])[0] for j in range(2)])
    drawn = DrawnDataSets(truths, X, y)
    constraints = Constraints(1, 3)
    generator = Generator.untrained(library, replace(TINY, max_length=3), constraints, seed)
    settings = PretrainingConfig(
        "vpg", steps=steps, n_datasets=2, n_groups=2, n_programs=k, warmup=1, learning_rate=0.01,
        entropy_weight=0.0,
    )  # fmt: skip
    trainer = Trainer(generator, PRIOR, settings, NOTHING, seed)
    if assign is not None:

        def rewards(tokens, lengths, drawn):
            population = Population(library, tokens, lengths, np.ones((len(lengths), 0)))
            of_each = [rewards_of(population.nmse(DataSet.from_arrays(X[j], y[j]))) for j in range(2)]
            order = assign(np.arange(2 * k), k)
            return np.choose(order, of_each).reshape(2, k)

        trainer.rewards = rewards
    for step in range(steps):
        trainer.optimizer.zero_grad(set_to_none=True)
        trainer._policy_gradient(Batch(1, drawn, blind=False), new_state(seed, step))
        trainer.optimizer.step()
    with torch.no_grad():
        encoding = generator.encode(X, y, 1)
        log_probs = generator.log_probs(encoding, truths.tokens, truths.lengths, generator.grammar(1))
    return log_probs.programs.exp().ravel().numpy()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_vanilla_policy_gradient_learns_to_answer_each_data_set_its_own(seed):
    assert answers_after_training(seed=seed).min() > 0.8


@pytest.mark.slow
def test_rewards_in_another_order_than_the_programs_would_not_teach_it():
    """The defect of the published program: data sets 0, 0, .., 1, 1 rewarded as 0, 1, 0, 1, .."""
    right = answers_after_training(lambda i, k: i // k)
    transposed = answers_after_training(lambda i, k: i % 2)
    swapped = answers_after_training(lambda i, k: 1 - i // k)
    assert right.min() > 0.8
    assert transposed.min() < 0.6
    assert swapped.max() < 0.2


def test_every_program_is_rewarded_on_the_data_set_it_was_sampled_for():
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 0)
    trainer = Trainer(generator, PRIOR, PretrainingConfig(steps=1), NOTHING, 0)
    n = 4
    drawn = PRIOR.draw(n, 15, 2, LIBRARY, generator.constraints, new_state(1))
    assert len({y.tobytes() for y in drawn.y}) == n
    programs = drawn.programs
    order = np.arange(n)
    for shift in range(n):  # the true programs of the data sets, moved on by `shift`
        at = np.repeat((order + shift) % n, 3)
        rewards = trainer.rewards(programs.tokens[at], programs.lengths[at], drawn)
        assert rewards.shape == (n, 3)
        expected = [
            [rewards_of(programs[i : i + 1].nmse(drawn.X[j], drawn.y[j]))[0]] * 3
            for j, i in enumerate(at[::3])
        ]
        np.testing.assert_array_equal(rewards, expected)
        assert (rewards == 1.0).all() == (shift == 0)


def test_the_policy_gradient_is_that_of_its_objective_on_its_own_samples():
    """Gradient of the trainer, against the loss written out program by program, data set by data set."""
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 0)
    with torch.no_grad():
        generator.decoder.out.weight.mul_(50.0)
    settings = PretrainingConfig(
        "vpg",
        steps=10,
        n_datasets=3,
        n_groups=1,
        n_programs=7,
        entropy_weight=0.5,
        entropy_decay=0.7,
        baseline_alpha=0.5,
    )
    trainer = Trainer(generator, PRIOR, settings, NOTHING, 0)
    trainer.baseline.value = 0.9
    drawn = PRIOR.draw(3, 15, 2, LIBRARY, generator.constraints, new_state(1))
    trainer._policy_gradient(Batch(2, drawn, blind=False), new_state(5))
    gradient = [parameter.grad.clone() for parameter in generator.parameters()]

    generator.zero_grad()
    grammar = generator.grammar(2)
    samples = generator.sample_encoded(
        generator.encode(drawn.X, drawn.y, 2).detached(), 7, grammar, new_state(5)
    )
    terms, rewards = [], []
    for j, i in itertools.product(range(3), range(7)):
        b = slice(7 * j + i, 7 * j + i + 1)
        encoding = generator.encode(drawn.X[j : j + 1], drawn.y[j : j + 1], 2)
        scored = generator.log_probs(encoding, samples.tokens[b], samples.lengths[b], grammar)
        program = generator.population(samples.tokens[b], samples.lengths[b])
        rewards.append(float(rewards_of(program.nmse(drawn.X[j], drawn.y[j]))[0]))
        entropy = sum(0.7**t * h for t, h in enumerate(scored.entropies[0, 0]))
        terms.append((scored.programs[0, 0], entropy))
    baseline = 0.5 * np.mean(rewards) + 0.5 * 0.9
    loss = sum(-(r - baseline) * p - 0.5 * h for r, (p, h) in zip(rewards, terms)) / 21
    loss.backward()
    for parameter, expected in zip(generator.parameters(), gradient):
        torch.testing.assert_close(parameter.grad, expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("n_datasets", [3, 70])
def test_the_cross_entropy_gradient_does_not_depend_on_how_it_is_divided(n_datasets):
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 0)
    trainer = Trainer(generator, PRIOR, PretrainingConfig(steps=1, n_groups=1), NOTHING, 0)
    drawn = PRIOR.draw(n_datasets, 15, 2, LIBRARY, generator.constraints, new_state(1))
    loss = trainer._cross_entropy(Batch(2, drawn, blind=False))
    gradient = [parameter.grad.clone() for parameter in generator.parameters()]
    generator.zero_grad()
    programs = drawn.programs
    encoding = generator.encode(drawn.X, drawn.y, 2)
    scored = generator.log_probs(encoding, programs.tokens, programs.lengths, generator.grammar(2))
    whole = -scored.programs.mean()
    whole.backward()
    assert loss == pytest.approx(whole.item(), rel=1e-5)
    for parameter, expected in zip(generator.parameters(), gradient):
        torch.testing.assert_close(parameter.grad, expected, atol=1e-5, rtol=1e-3)


def test_a_blind_batch_says_nothing_of_any_one_data_set():
    """With the data sets in another order, programs are as likely as before; seeing, they are not."""
    generator = Generator.untrained(LIBRARY, tiny_guided_config(8), Constraints(1, 8), 0)
    trainer = Trainer(generator, PRIOR, PretrainingConfig(steps=1, n_groups=1), NOTHING, 0)
    drawn = PRIOR.draw(6, 15, 2, LIBRARY, generator.constraints, new_state(1))
    moved = drawn._replace(X=drawn.X[::-1].copy(), y=drawn.y[::-1].copy())
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    losses = {
        blind: [trainer._cross_entropy(Batch(2, d, blind)) for d in (drawn, moved)] for blind in (True, False)
    }
    assert losses[True][0] == pytest.approx(losses[True][1], abs=1e-4)
    assert abs(losses[False][0] - losses[False][1]) > 1e-2


# Settings.


def test_the_settings_of_the_paper_are_those_of_its_text():
    """Appendix "Dataset Generation and Training"; 10K data sets in mini-batches of 5."""
    paper = PRETRAINING_CONFIGS["paper"]
    assert paper.objective == "vpg"
    assert (paper.n_programs, paper.n_datasets) == (500, 5)
    assert (paper.baseline_alpha, paper.entropy_weight, paper.learning_rate) == (0.5, 0.003, 0.001)
    assert paper.steps * paper.n_datasets == 10_000
    assert paper.epsilon == 0.02
    assert paper.weight_decay == 0.0  # Adam
    assert (Prior().min_leaves, Prior().max_leaves, Prior().variable_probability) == (3, 5, 0.8)


def test_an_unknown_objective_lists_the_known_ones():
    with pytest.raises(ValueError, match=", ".join(OBJECTIVES)):
        PretrainingConfig(objective="magic")


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"n_datasets": 0},
        {"n_datasets": 2},  # the default has four groups
        {"n_programs": 0},
        {"min_samples": 0},
        {"max_samples": 7},
        {"blind_share": 1.5},
        {"blind_share": -0.1},
        {"usual_columns": 0},
    ],
)
def test_settings_out_of_their_range_are_refused(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        PretrainingConfig(**changes)


# What is kept from training.


@pytest.mark.parametrize("n_variables", [1, 2, 3])
def test_every_benchmark_problem_is_excluded_under_every_order_of_its_variables(n_variables):
    points, values, *_ = benchmark_decontamination(get_library("koza", n_variables))
    for problem in itertools.chain.from_iterable(map(load_set, list_sets())):
        if problem.n_variables > n_variables:
            continue
        for columns in itertools.permutations(range(n_variables), problem.n_variables):
            with np.errstate(all="ignore"):
                expected = problem.target(points[list(columns)].T)
            compared = np.isfinite(expected)
            if compared.sum() < 2:
                continue
            close = np.isclose(values[:, compared], expected[compared], rtol=1e-12).all(axis=1)
            assert close.any(), problem.name


def test_the_laws_of_textbooks_are_held_out_by_value_and_skeleton_and_a_card_may_name_older_sets():
    library = get_library("physics", 2)
    older = [name for name in list_sets() if name != "laws"]
    everything, without = (benchmark_decontamination(library, sets=sets) for sets in (None, older))
    assert set(without.skeletons.tolist()) < set(everything.skeletons.tolist())
    for law in (problem for problem in load_set("laws") if problem.n_variables == 2):
        expected = comparable(law.target(everything.points.T)[None], linear_scaling=True)
        assert np.isclose(everything.values, expected, rtol=1e-9).all(axis=1).any(), law.name
        assert not np.isclose(without.values, expected, rtol=1e-9).all(axis=1).any(), law.name


@pytest.mark.slow
def test_many_variables_do_not_take_more_orders_than_can_be_listed():
    """12 variables have 479,001,600 orders; where all coordinates are equal, none of them matters."""
    points, values, *_ = benchmark_decontamination(get_library("synth", 12))
    assert len(values) < 200_000
    problem = next(p for p in load_set("synthetic_d12") if p.n_variables == 12)
    rng = np.random.default_rng(0)
    for _ in range(5):
        expected = problem.target(points[rng.permutation(12)].T)
        compared = ~np.isnan(values)
        close = np.isclose(values, expected, rtol=1e-9) | ~compared
        assert (close.all(axis=1) & compared.any(axis=1)).any()


def test_benchmark_problems_are_not_among_the_equations_trained_on():
    library, constraints = get_library("koza", 2), Constraints()
    fresh = np.random.default_rng(0).uniform(1.0, 3.0, (9, 2))
    names = ["Feynman-1", "Feynman-3", "Nguyen-12", "Nguyen-1"]

    def found(excluded):
        drawn = Prior().draw(20_000, 5, 2, library, constraints, new_state(0), excluded)
        values = drawn.programs.predict(fresh)
        share = {}
        for problem in map(load_problem, names):
            orders = itertools.permutations(range(2), problem.n_variables)
            targets = [problem.target(fresh[:, list(columns)]) for columns in orders]
            share[problem.name] = sum(
                np.isclose(values, target, rtol=1e-9).all(axis=1).sum() for target in targets
            )
        return share

    assert found(None)["Feynman-1"] > 0
    assert set(found(benchmark_decontamination(library)).values()) == {0}


@pytest.mark.slow
def test_a_benchmark_problem_is_left_out_where_it_divides_by_a_difference():
    """x1*x2*(x3 - x4)/x5 as x1*x2/(x5/(x3 - x4)) has no value where all columns are equal."""
    library, problem = get_library("synth", 12), load_problem("Feynman-10")
    prior = Prior(5, 5, {"mul": 1.0, "div": 1.0, "sub": 1.0}, variable_probability=1.0)
    fresh = np.random.default_rng(0).uniform(1.0, 3.0, (9, 12))
    targets = [problem.target(fresh[:, list(order)]) for order in itertools.permutations(range(5))]

    def n_found(excluded):
        drawn = prior.draw(10_000, 5, 12, library, Constraints(), new_state(0), excluded).programs
        assert drawn.tokens.max() == library.index["x5"]  # the first columns: it is those that are compared
        values = drawn.predict(fresh)
        return sum(np.isclose(values, target, rtol=1e-9).all(axis=1).sum() for target in targets)

    assert n_found(None) > 3
    assert n_found(benchmark_decontamination(library)) == 0


def drawn_with(prior, n, library, excluded):
    programs = prior.draw(n, 5, 2, library, Constraints(), new_state(0), excluded).programs
    return [
        " ".join(library.tokens[t].name for t in tokens[:length])
        for tokens, length in zip(programs.tokens, programs.lengths)
    ]


def test_a_benchmark_law_is_left_out_whatever_its_constants():
    """Nguyen-10c is sin(1.5*x1)*cos(0.5*x2); its kin with other constants and operators stay."""
    library = get_library("koza-const", 2)
    prior = Prior(
        3, 4, {"mul": 2.0, "sin": 2.0, "cos": 1.0}, variable_probability=0.5, constants="log-uniform"
    )
    laws = {"mul sin mul const x1 cos mul const x2", "mul sin mul const x2 cos mul const x1"}
    kin = {"mul sin mul const x1 sin mul const x2", "mul sin x1 cos mul const x2"}
    known = benchmark_decontamination(library)
    values_alone = known._replace(skeletons=np.empty(0, dtype=np.uint64))
    assert laws | kin <= set(drawn_with(prior, 20_000, library, values_alone))
    drawn = set(drawn_with(prior, 20_000, library, known))
    assert not laws & drawn
    assert kin <= drawn


def test_a_benchmark_law_is_left_out_in_other_units():
    """With linear scaling values are compared but for scale and offset."""
    library = get_library("koza-const", 2)
    known = benchmark_decontamination(library)._replace(skeletons=np.empty(0, dtype=np.uint64))
    prior = Prior(2, 3, {"mul": 1.0, "div": 1.0, "add": 1.0})
    law = "mul x1 x2"  # Feynman-1 among others
    assert law in drawn_with(prior, 3000, library, None)
    assert law not in drawn_with(prior, 3000, library, known)
    assert "mul x1 add const x2" in drawn_with(prior, 3000, library, known)


def run(out, **settings):
    defaults = {
        "config": TINY, "prior": PRIOR, "constraints": Constraints(1, 8), "steps": 6, "n_datasets": 8,
        "n_programs": 10, "n_validation": 4, "random_state": 3, "warmup": 2,
    }  # fmt: skip
    return pretrain(LIBRARY, 2, out, **(defaults | settings))


@pytest.fixture(autouse=True)
def quick_figures(monkeypatch):
    """A thousand samples for each validation equation would take most of the time of these tests."""
    measure_few_programs(monkeypatch, 10)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The generator of a run of six steps of cross-entropy, and its folder."""
    return whole_run(tmp_path_factory, run)


def assert_same_weights(a, b):
    for name, tensor in a.state_dict().items():
        assert torch.equal(tensor, b.state_dict()[name]), name


@pytest.mark.parametrize(
    "objective",
    [pytest.param(o, marks=() if o == "cross-entropy" else pytest.mark.slow) for o in OBJECTIVES],
)
def test_a_run_that_was_interrupted_and_resumed_equals_one_that_was_not(tmp_path, objective, whole):
    def interrupt(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    usual = PretrainingConfig().objective
    whole = whole[0] if objective == usual else run(tmp_path / "whole", objective=objective)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", objective=objective, callback=interrupt)
    assert not (tmp_path / "parts" / CARD).exists()
    steps = []
    resumed = run(tmp_path / "parts", objective=objective, callback=lambda p: steps.append(p.step))
    assert steps == [4, 5, 6]
    assert_same_weights(whole, resumed)
    assert_same_weights(whole, load_generator(tmp_path / "parts"))


@pytest.mark.parametrize(
    "where",
    [
        "torch.nn.utils.clip_grad_norm_",
        pytest.param("dgsr.generator.objectives.hierarchical_entropy", marks=pytest.mark.slow),
    ],
)
def test_an_interruption_in_the_midst_of_a_step_loses_that_step_alone(tmp_path, monkeypatch, where):
    whole = run(tmp_path / "whole", objective="vpg")
    module, name = where.rsplit(".", 1)
    owner = torch.nn.utils if module.startswith("torch") else trainer_module.objectives
    real, calls = getattr(owner, name), itertools.count(1)

    def interrupt(*args, **kwargs):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", objective="vpg")
    assert_same_weights(whole, run(tmp_path / "parts", objective="vpg"))


def test_a_run_out_of_time_leaves_a_generator_and_goes_on_when_called_again(tmp_path, whole):
    stopped = run(tmp_path / "parts", max_time=1e-9)
    card = json.loads((tmp_path / "parts" / CARD).read_text())
    assert card["steps_done"] < 6
    assert_same_weights(stopped, load_generator(tmp_path / "parts"))
    assert_same_weights(whole[0], run(tmp_path / "parts"))


def test_without_resume_a_run_begins_anew(tmp_path):
    run(tmp_path, steps=2)
    steps = []
    run(tmp_path, steps=3, resume=False, callback=lambda p: steps.append(p.step))
    assert steps == [1, 2, 3]


@pytest.mark.parametrize(
    "other",
    [
        {"learning_rate": 0.5},
        {"random_state": 4},
        {"prior": Prior(min_leaves=2, max_leaves=4)},
        {"config": replace(TINY, n_latents=3)},
        {"constraints": Constraints(2, 8)},
        {"n_validation": 9},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_run_is_not_resumed_with_other_settings(tmp_path, other):
    run(tmp_path, steps=6, max_time=1e-9)
    before = (tmp_path / "training.safetensors").read_bytes()
    with pytest.raises(ValueError, match=r"other settings; .*resume=False"):
        run(tmp_path, **other)
    assert (tmp_path / "training.safetensors").read_bytes() == before


def test_a_run_is_not_resumed_with_inputs_of_another_layout(tmp_path, monkeypatch):
    run(tmp_path, steps=6, max_time=1e-9)
    monkeypatch.setattr(training_state, "INPUT_LAYOUT", 2)
    with pytest.raises(ValueError, match=r"other settings; .*resume=False"):
        run(tmp_path)


def test_a_run_is_not_resumed_where_its_seed_draws_other_equations_now(tmp_path, monkeypatch):
    run(tmp_path, steps=6, max_time=1e-9)
    monkeypatch.setattr(training_state, "PRIOR_VERSION", 0)
    with pytest.raises(ValueError, match=r"other settings; .*resume=False"):
        run(tmp_path)


def test_a_run_may_be_made_longer_while_it_goes_and_counts_all_its_steps(tmp_path):
    run(tmp_path, steps=2)
    told = []
    run(tmp_path, steps=4, max_time=1e6, callback=told.append)
    assert [(p.step, p.share) for p in told] == [(3, 0.75), (4, 1.0)]
    assert told[0].seconds_left > 0.0 == told[1].seconds_left


def test_a_run_names_its_phases(tmp_path, monkeypatch):
    begun = []
    for module in ("run", "conditioning_gap"):
        monkeypatch.setattr(f"dgsr.pretraining.{module}.begin_phase", begun.append)
    run(tmp_path, steps=1)
    measuring = [phase for phase in begun if phase.startswith("measuring on equation ")]
    others = [phase for phase in begun if phase not in measuring]
    assert others == ["drawing the equations that are held out", "training", "training"]
    assert begun[-1] == measuring[-1]


@pytest.mark.parametrize("content", [b"", b"half", b"\0" * 500])
def test_a_damaged_training_state_is_refused_with_the_mend(tmp_path, content):
    path = tmp_path / "training.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"training\.safetensors is damaged.*resume=False"):
        run(tmp_path)


@pytest.mark.parametrize("entry", ["step", "settings", "weights"])
def test_a_training_state_that_lacks_an_entry_is_refused_with_the_mend(tmp_path, entry):
    run(tmp_path, steps=6, max_time=1e-9)
    path = tmp_path / "training.safetensors"
    header, tensors, _ = read_tensors(path)
    entries = json.loads(header["training"])
    if entry == "weights":
        tensors.popitem()
    else:
        del entries[entry]
    write_tensors(path, tensors, {"training": json.dumps(entries)})
    with pytest.raises(ValueError, match=r"training\.safetensors is damaged.*resume=False"):
        run(tmp_path)


def test_a_training_state_of_an_earlier_version_is_gone_on_from(tmp_path):
    run(tmp_path, steps=2)
    path = tmp_path / "training.safetensors"
    header, tensors, _ = read_tensors(path)
    entries = json.loads(header["training"])
    for name in ("n_variables", "excluded"):
        del entries["settings"][name]
    write_tensors(path, tensors, {"training": json.dumps(entries)})
    steps = []
    run(tmp_path, steps=4, callback=lambda p: steps.append(p.step))
    assert steps == [3, 4]


def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"device='abacus' cannot be used \(.*; choose 'cpu'"):
        run(tmp_path, device="abacus")
    with pytest.raises(ValueError, match="device='abacus' cannot be used"):
        load_generator("koza-d12", "abacus")


def test_the_card_says_how_the_generator_was_made_and_how_good_it_is(whole):
    generator, folder = whole
    card = json.loads((folder / CARD).read_text())
    assert card["name"] == "mine"
    assert card["library"]["operators"] == ["add", "mul"]
    assert card["n_parameters"] == generator.n_parameters()
    assert card["training"]["seed"] == 3
    assert (card["steps_done"], card["equations_seen"]) == (6, 48)
    assert {"log_likelihood_right", "log_likelihood_wrong", "reward_right"} <= card["validation"].keys()
    assert card["held_out_sets"] == list_sets()
    assert card["curves"][-1]["step"] == 6
    assert not generator.training


def test_training_may_start_from_a_generator_of_the_same_library(tmp_path):
    first = run(tmp_path / "first", steps=1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "second", start_from=tmp_path / "first", callback=raise_interrupt)
    again = run(tmp_path / "third", start_from=tmp_path / "first", learning_rate=0.0, steps=1)
    assert_same_weights(first, again)
    with pytest.raises(ValueError, match=r"library 'mine', which cannot be adapted to 'koza'"):
        pretrain("koza", 2, tmp_path / "fourth", start_from=tmp_path / "first")
    with pytest.raises(ValueError, match="constraints are not those of start_from"):
        pretrain(LIBRARY, 2, tmp_path / "fifth", start_from=tmp_path / "first", constraints=Constraints(1, 5))


def test_equations_have_no_more_columns_than_asked_for():
    config = PretrainingConfig(n_datasets=10, n_groups=1)
    library = LIBRARY.with_variables(6)
    stream = Stream(library, Constraints(1, 8), PRIOR, config, nothing_held_out(6), seed=0, n_variables=2)
    assert max(stream[i].n_variables for i in range(50)) == 2


def raise_interrupt(progress):
    raise KeyboardInterrupt


def test_pretraining_leaves_global_random_state_alone(tmp_path):
    state = torch.get_rng_state()
    run(tmp_path, steps=2)
    assert torch.equal(torch.get_rng_state(), state)


# Does it learn, and is that seen?


@pytest.fixture(scope="module")
def held_out():
    """Equations that no training sees."""
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 0)
    return draw_validation_set(generator, PRIOR, NOTHING, 40, seed=0)


@pytest.fixture(scope="module")
def trained(held_out):
    """A tiny generator after 300 steps of cross-entropy, with its losses and its figures before and after."""
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 0)
    before = measure(generator, held_out, 50, 40)
    settings = PretrainingConfig(
        steps=300, n_datasets=64, n_groups=2, max_samples=60, learning_rate=0.01, warmup=5
    )
    trainer = Trainer(generator, PRIOR, settings, NOTHING, 0)
    losses = [trainer.run_step() for _ in range(300)]
    return SimpleNamespace(losses=losses, before=before, after=measure(generator.eval(), held_out, 50, 40))


@pytest.mark.slow
def test_cross_entropy_training_lowers_the_loss(trained):
    assert np.mean(trained.losses[-20:]) < 0.7 * np.mean(trained.losses[:5])


@pytest.mark.slow
def test_an_untrained_generator_has_no_conditioning_gap_and_a_trained_one_has(trained):
    def gaps(figures):
        return [figures[f"{name}_right"] - figures[f"{name}_wrong"] for name in ("log_likelihood", "reward")]

    untrained = gaps(trained.before)
    learnt = gaps(trained.after)
    assert abs(untrained[0]) < 0.1
    assert abs(untrained[1]) < 0.03
    assert learnt[0] > 1.0
    assert learnt[1] > 0.05
    assert trained.after["log_likelihood_right"] > trained.after["log_likelihood_none"]
    assert trained.after["hit_10"] > trained.before["hit_10"]
    assert trained.after["hit_1"] <= trained.after["hit_10"]


def test_the_figures_are_those_of_a_generator_that_knows_the_answers(held_out, monkeypatch):
    """One that writes the true program of the encoding it is given; here the encoding is its number."""
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 0)
    drawn = held_out.drawn
    numbers = torch.arange(40.0).view(40, 1, 1)
    monkeypatch.setattr(generator, "encode", lambda X, y, d: Encoding(numbers))

    def answer(encoding, n, grammar, state):
        j = int(encoding.latents.item())
        return SimpleNamespace(
            tokens=np.repeat(drawn.programs.tokens[j : j + 1], n, axis=0),
            lengths=np.repeat(drawn.programs.lengths[j : j + 1], n),
        )

    def log_probs(encoding, tokens, lengths, grammar):
        right = encoding.latents.view(-1) == torch.arange(40.0)
        return SimpleNamespace(programs=torch.where(right, -0.5, -7.0).view(40, 1))

    monkeypatch.setattr(generator, "sample_encoded", answer)
    monkeypatch.setattr(generator, "log_probs", log_probs)
    figures = measure(generator, held_out, 10, 40)
    assert figures["log_likelihood_right"] == -0.5
    assert figures["log_likelihood_wrong"] == -7.0
    assert figures["reward_right"] == 1.0
    assert figures["hit_1"] == figures["hit_10"] == figures["valid"] == 1.0
    assert figures["reward_wrong"] < 0.8
    assert figures["hit_100_wrong"] < 0.2


def test_held_out_equations_are_never_trained_on(held_out):
    excluded = held_out.added_to(NOTHING)
    assert len(excluded.values) > 10
    config = PretrainingConfig(n_datasets=500, n_groups=1)
    stream = Stream(LIBRARY, Constraints(1, 8), PRIOR, config, excluded, seed=1)
    fresh = np.random.default_rng(0).uniform(1.0, 3.0, (7, 2))
    theirs = held_out.drawn.programs.predict(fresh)
    for number in range(10):
        ours = stream[number].drawn.programs.predict(fresh)  # with columns in any order
        assert not np.isclose(ours[:, None], theirs[None], rtol=1e-9).all(axis=-1).any()


def test_equations_have_the_first_variables_before_they_are_reordered():
    library = get_library("koza", 5)
    drawn = Prior.varied_for(library, 5).draw(3_000, 10, 5, library, Constraints(), new_state(0))
    for tokens in drawn.programs.tokens:
        used = {
            token - library.first_variable for token in tokens.tolist() if token >= library.first_variable
        }
        assert used == set(range(len(used)))


def test_a_validation_set_is_the_same_for_the_same_seed(held_out):
    generator = Generator.untrained(LIBRARY, TINY, Constraints(1, 8), 7)
    again = conditioning_gap.draw_validation_set(generator, PRIOR, NOTHING, 40, seed=0)
    np.testing.assert_array_equal(again.drawn.y, held_out.drawn.y)


# Libraries with constants.

CONST = Library("mine-const", ("add", "mul", "sin"), True, 2)


def test_constants_are_fitted_before_a_sample_is_judged(monkeypatch):
    """Each distinct program once; the population keeps its own constants."""
    population = Population(
        CONST,
        np.array([[4, 0, 0], [2, 4, 0], [4, 0, 0], [5, 0, 0]])[:, :3],
        np.array([1, 2, 1, 1]),
        np.ones((4, 2)),
    )
    asked = []

    def fit(programs, data, second_start):
        asked.append(programs)
        programs.constants[:] = 9.0
        return fit_of(programs.tokens[:, 0] + 0.5)

    monkeypatch.setattr(conditioning_gap, "fit_constants", fit)
    data = DataSet.from_arrays(np.ones((5, 2)), np.arange(5.0))
    assert conditioning_gap.fitted_nmse(population, data).tolist() == [4.5, 2.5, 4.5, 5.5]
    assert [len(programs) for programs in asked] == [3]
    assert (population.constants == 1.0).all()


def fit_of(nmse):
    return Fit(nmse, np.ones(len(nmse)), np.zeros(len(nmse)))


def test_a_sample_of_the_right_form_is_a_hit_once_its_constants_are_fitted(monkeypatch):
    generator = Generator.untrained(CONST, TINY, Constraints(1, 8), 0)
    held_out = draw_validation_set(generator, Prior.default_for(CONST, 2), NOTHING, 3, seed=0)
    truths = held_out.drawn.programs
    numbers = torch.arange(3.0).view(3, 1, 1)
    monkeypatch.setattr(generator, "encode", lambda X, y, d: Encoding(numbers))

    def answer(encoding, n, grammar, state):
        at = np.full(n, int(encoding.latents.item()))
        return SimpleNamespace(tokens=truths.tokens[at], lengths=truths.lengths[at])

    def fit(programs, data, second_start):
        programs.constants[:] = truths.constants[(truths.tokens == programs.tokens[0]).all(axis=1)][0]
        return fit_of(programs.nmse(data) + 1e-11)

    monkeypatch.setattr(generator, "sample_encoded", answer)
    monkeypatch.setattr(conditioning_gap, "fit_constants", fit)
    monkeypatch.setattr(
        generator, "log_probs", lambda encoding, *rest: SimpleNamespace(programs=torch.zeros(3, 1))
    )
    figures = measure(generator, held_out, 10, 3)
    assert figures["hit_1"] == 1.0
    assert figures["reward_right"] == pytest.approx(1.0)


def test_the_data_of_a_validation_set_have_no_noise():
    generator = Generator.untrained(CONST, TINY, Constraints(1, 8), 0)
    drawn = draw_validation_set(generator, Prior(noise=(0.1, 0.1, 1.0)), NOTHING, 5, seed=0).drawn
    for b in range(5):
        # Another order of the columns is one of the terms, which may round otherwise.
        np.testing.assert_allclose(drawn.programs[b : b + 1].predict(drawn.X[b])[0], drawn.y[b], rtol=1e-12)


@pytest.mark.slow
def test_a_generator_with_constants_is_trained_with_defaults_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setitem(run_module.CONFIGS, "base", tiny_guided_config(30))
    settings = {"steps": 2, "n_datasets": 8, "n_validation": 2}
    measure_few_programs(monkeypatch, 3)  # constants take long to fit
    generator = pretrain("koza-const", 5, tmp_path / "const", **settings)
    card = json.loads((tmp_path / "const" / CARD).read_text())
    assert generator.config.target == "standardised"
    assert card["prior"]["constants"] == "log-uniform"
    assert card["prior"]["max_leaves"] == 8
    assert load_generator(tmp_path / "const").config == generator.config
    plain = pretrain("koza", 2, tmp_path / "plain", **settings)
    assert plain.config.target == "raw"
    assert json.loads((tmp_path / "plain" / CARD).read_text())["prior"]["max_leaves"] == 5


def test_a_training_needs_no_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "to_svg", to_svg)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run(tmp_path, steps=2)
    assert not (tmp_path / CURVES).exists()
    assert (tmp_path / CARD).exists()


@pytest.mark.slow
def test_the_curves_are_drawn_as_the_training_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "to_svg", to_svg)

    class Enough(Exception):
        pass

    def stop_at_the_first_figures(progress):
        if progress.validation is not None and progress.step > 1:
            raise Enough

    def lines():
        groups = ElementTree.parse(tmp_path / CURVES).getroot().iter("{http://www.w3.org/2000/svg}g")
        shown = [group for group in groups if group.get("id", "").startswith(("log_likelihood", "hit"))]
        paths = {group.get("id"): group.find("{http://www.w3.org/2000/svg}path").get("d") for group in shown}
        return {name: re.findall(r"[ML] (\S+) (\S+)", path) for name, path in paths.items()}

    with pytest.raises(Enough):
        run(tmp_path, steps=40, callback=stop_at_the_first_figures)
    assert len(lines()) == 5  # three likelihoods; two shares, of the first and the first ten samples
    (tmp_path / CURVES).unlink()
    run(tmp_path, steps=40)
    curves = json.loads((tmp_path / CARD).read_text())["curves"]
    assert {len(line) for line in lines().values()} == {len(curves)}
    assert all(0.0 <= point["waited"] < 1.0 for point in curves)
    heights = [float(y) for _, y in lines()["log_likelihood_right"]]
    assert np.argmin(heights) == np.argmax([point["log_likelihood_right"] for point in curves])
