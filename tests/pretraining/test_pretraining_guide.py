"""Training of a generator with a guide: decoder and guide learn together from the vectors of one encoder."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.generator.checkpoints import CARD, CURVES, load_generator
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.pretraining import PRETRAINING_CONFIGS, PretrainingConfig, Trainer, pretrain
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.curves import to_svg
from dgsr.pretraining.decontamination import nothing_held_out
from dgsr.pretraining.guide import guide_nats
from dgsr.pretraining.prior import Prior
from dgsr.pretraining.stream import Batch
from searches import lively, measure_few_programs, tiny_guided_config, whole_run

pytestmark = pytest.mark.search

TINY = tiny_guided_config(8)
NO_GUIDE = replace(TINY, encoder="rows")
LIBRARY = Library("mine", ("add", "mul", "sin"), False, 3)
LIMITS = Constraints(1, 8)
PRIOR = Prior(min_leaves=2, max_leaves=3)
NATS = {"guide_nats_right", "guide_nats_wrong", "guide_nats_none"}


def untrained(config=TINY):
    return Generator.untrained(LIBRARY, config, LIMITS, 0)


def drawn_datasets(n, n_variables=3, seed=1):
    return PRIOR.draw(n, 40, n_variables, LIBRARY, LIMITS, new_state(seed))


def run(out, library=LIBRARY, **settings):
    defaults = {
        "config": TINY, "prior": PRIOR, "constraints": LIMITS, "steps": 4, "warmup": 2, "n_datasets": 8,
        "n_groups": 2, "max_samples": 30, "n_validation": 4, "random_state": 3,
    }  # fmt: skip
    return pretrain(library, 3, out, **(defaults | settings))


def changed_weights(generator, before):
    """Names of the weights that differ."""
    given = before.state_dict()
    return {n for n, t in generator.state_dict().items() if n not in given or not torch.equal(t, given[n])}


@pytest.fixture(autouse=True)
def quick_figures(monkeypatch):
    """A thousand samples for each validation equation would take most of the time of these tests."""
    measure_few_programs(monkeypatch, 10)


# ---- the loss -----------------------------------------------------------------------------------


def nats_by_hand(log_probs, program):
    """Minus the log-likelihood of the tokens of one program, each given its parent."""
    open_parents, nats = [len(LIBRARY.operators)], 0.0
    for token in program.tolist():
        nats -= float(log_probs[open_parents.pop(), token])
        open_parents += [token] * LIBRARY.tokens[token].arity
    assert not open_parents
    return nats


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_the_loss_of_the_guide_is_that_of_every_pair_of_parent_and_child(shift):
    generator, n = untrained(), 40
    lively(generator.encoder)
    lively(generator.guide)
    drawn = drawn_datasets(n, 2)
    programs = drawn.programs
    with torch.no_grad():
        encoding = generator.encode(drawn.X, drawn.y, 2).of(np.roll(np.arange(n), -shift))
        found = guide_nats(generator, encoding, programs, 2)
        expected = []
        for b in range(n):
            data = (b + shift) % n
            alone = generator.encode(drawn.X[[data]], drawn.y[[data]], 2)
            program = programs.tokens[b, : programs.lengths[b]]
            expected.append(nats_by_hand(generator.guide(alone.latents)[0], program))
    assert found.shape == (n,)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert np.ptp(expected) > 0.5


def test_a_generator_without_a_guide_is_refused_with_the_mend():
    generator, drawn = untrained(NO_GUIDE), drawn_datasets(2)
    with pytest.raises(ValueError, match="encoder='descriptions'"):
        guide_nats(generator, generator.encode(drawn.X, drawn.y, 3), drawn.programs, 3)


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2])
def test_the_loss_is_the_sum_of_the_nats_of_decoder_and_guide(n_groups, blind):
    """A batch of more programs than are trained on at once; its gradient is divided by its groups."""
    generator = untrained()
    lively(generator.guide)
    settings = PretrainingConfig(steps=1, n_datasets=100 * n_groups, n_groups=n_groups)
    trainer = Trainer(generator, PRIOR, settings, nothing_held_out(3), 0)
    drawn = drawn_datasets(100, 2)
    if blind:  # of all data sets that are trained on at once there is one encoding
        drawn.X[:], drawn.y[:] = drawn.X[:1], drawn.y[:1]
    loss = trainer._cross_entropy(Batch(2, drawn, blind))
    found = {name: parameter.grad.clone() for name, parameter in generator.named_parameters()}
    generator.zero_grad()
    encoding = generator.encode(drawn.X, drawn.y, 2)
    programs = drawn.programs
    log_probs = generator.log_probs(encoding, programs.tokens, programs.lengths, generator.grammar(2))
    expected = guide_nats(generator, encoding, programs, 2).mean() - log_probs.programs.mean()
    (expected / n_groups).backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for name, parameter in generator.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-4, rtol=1e-3, msg=name)


def test_columns_that_do_not_count_are_not_read():
    generator, drawn = untrained(), drawn_datasets(6, 2)
    drawn.X[:, :, 2] = np.random.default_rng(0).normal(size=drawn.X.shape[:2])
    with torch.no_grad():
        nats = guide_nats(generator, generator.encode(drawn.X, drawn.y, 2), drawn.programs, 2)
        drawn.X[:, :, 2] = drawn.y
        again = guide_nats(generator, generator.encode(drawn.X, drawn.y, 2), drawn.programs, 2)
    assert torch.equal(again, nats)


# ---- does it learn ------------------------------------------------------------------------------


def trainer_of(generator, steps):
    settings = PretrainingConfig(
        steps=steps, n_datasets=32, n_groups=1, learning_rate=0.01, warmup=5, min_samples=30
    )
    return Trainer(generator, PRIOR, settings, nothing_held_out(3), 0)


@pytest.fixture(scope="module")
def trained():
    """A tiny generator after 120 steps, with its losses and its figures before and after."""
    generator = untrained()
    held_out = draw_validation_set(generator, PRIOR, nothing_held_out(3), 60, seed=0)
    first = measure(generator, held_out, 10, 60)
    trainer = trainer_of(generator, 120)
    losses = [trainer.run_step() for _ in range(120)]
    last = measure(generator.eval(), held_out, 10, 60)
    return SimpleNamespace(losses=losses, first=first, last=last)


@pytest.mark.slow
def test_training_lowers_the_nats_of_decoder_and_guide(trained):
    assert np.mean(trained.losses[-10:]) < 0.75 * np.mean(trained.losses[:3])
    assert trained.last["guide_nats_right"] < 0.75 * trained.first["guide_nats_right"]
    assert trained.last["log_likelihood_right"] > trained.first["log_likelihood_right"] + 1.0


@pytest.mark.slow
def test_decoder_and_guide_learn_from_the_data_and_not_the_prior_alone(trained):
    first, last = trained.first, trained.last
    for name in ("guide_nats", "log_likelihood"):
        assert abs(first[f"{name}_right"] - first[f"{name}_wrong"]) < 0.2
    assert last["guide_nats_right"] < last["guide_nats_none"] - 0.2
    assert last["guide_nats_right"] < last["guide_nats_wrong"] - 0.5
    assert last["log_likelihood_right"] > last["log_likelihood_none"] + 0.2
    assert last["log_likelihood_right"] > last["log_likelihood_wrong"] + 0.5


def test_all_parts_are_trained():
    generator, before = untrained(), untrained()
    trainer = trainer_of(generator, 5)
    for _ in range(5):
        trainer.run_step()
    changed = changed_weights(generator, before)
    names = [name for name, _ in generator.named_parameters()]
    for part in ("encoder.", "decoder.", "guide."):
        of_part = {name for name in names if name.startswith(part)}
        assert len(changed & of_part) > 0.9 * len(of_part)
    assert "decoder.order.weight" in changed


def test_the_guide_is_taught_by_what_the_encoder_learns():
    generator, drawn = untrained(), drawn_datasets(8)
    lively(generator.guide)
    guide_nats(generator, generator.encode(drawn.X, drawn.y, 3), drawn.programs, 3).mean().backward()
    assert all(parameter.grad is None for parameter in generator.decoder.parameters())
    gradients = [
        parameter.grad for parameter in (*generator.encoder.parameters(), *generator.guide.parameters())
    ]
    assert sum(bool((gradient != 0.0).any()) for gradient in gradients) > 0.9 * len(gradients)


@pytest.mark.parametrize("objective", ["vpg", "risk-seeking"])
def test_policy_gradients_leave_the_guide_as_it_is(objective):
    generator, before = untrained(), untrained()
    settings = PretrainingConfig(objective, steps=2, n_datasets=8, n_programs=20, weight_decay=0.01)
    trainer = Trainer(generator, PRIOR, settings, nothing_held_out(3), 0)
    for _ in range(2):
        trainer.run_step()
    changed = changed_weights(generator, before)
    assert any(name.startswith("encoder.") for name in changed)
    assert not any(name.startswith("guide.") for name in changed)


# ---- figures ------------------------------------------------------------------------------------


def test_the_figures_of_the_guide_are_its_nats_for_the_right_data_for_others_and_for_none():
    generator = untrained().eval()
    lively(generator.encoder)
    lively(generator.guide)
    held_out = draw_validation_set(generator, PRIOR, nothing_held_out(3), 12, seed=0)
    found = measure(generator, held_out, 10, 10)
    drawn, n = held_out.drawn, 10
    rows = np.arange(n)
    with torch.no_grad():
        encoding = generator.encode(drawn.X[:n, :40], drawn.y[:n, :40], 3)
        of_none = replace(encoding, latents=encoding.latents.mean(0, keepdim=True).expand(n, -1, -1))
        for name, given in (("right", encoding), ("wrong", encoding.of((rows + 1) % n)), ("none", of_none)):
            nats = guide_nats(generator, given, drawn.programs[rows], 3).mean().item()
            assert found[f"guide_nats_{name}"] == pytest.approx(nats, rel=1e-2), name
    assert len({found[name] for name in NATS}) == 3


def test_a_generator_without_a_guide_has_no_such_figures():
    generator = untrained(NO_GUIDE).eval()
    held_out = draw_validation_set(generator, PRIOR, nothing_held_out(3), 4, seed=0)
    assert not NATS & measure(generator, held_out, 10, 4).keys()


# ---- a run and its files ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The generator of a run of four steps, and its folder."""
    return whole_run(tmp_path_factory, run)


def test_the_card_tells_of_decoder_and_guide(whole):
    generator, folder = whole
    card = json.loads((folder / CARD).read_text())
    assert card["name"] == "mine"
    assert card["config"] == asdict(TINY)
    assert card["training"]["objective"] == "cross-entropy"
    assert card["n_parameters"] == generator.n_parameters()
    assert {"log_likelihood_right", "hit_10"} | NATS <= card["validation"].keys()
    assert card["curves"][-1].keys() >= NATS
    assert card["curves"][-1]["step"] == 4


def test_a_saved_and_loaded_generator_is_the_trained_one(whole):
    generator, folder = whole
    loaded = load_generator(folder)
    assert loaded.config == TINY
    assert loaded.state_dict().keys() == generator.state_dict().keys()
    assert not changed_weights(loaded, generator)
    drawn = drawn_datasets(1)
    encodings = [made.encode_dataset(drawn.X[0], drawn.y[0]) for made in (generator, loaded)]
    assert torch.equal(encodings[0].latents, encodings[1].latents)
    np.testing.assert_array_equal(
        *(made.guide_probabilities(e) for made, e in zip((generator, loaded), encodings, strict=True))
    )


def test_a_run_that_was_interrupted_and_resumed_equals_one_that_was_not(tmp_path, whole):
    def interrupt(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    generator, folder = whole
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", callback=interrupt)
    assert not (tmp_path / "parts" / CARD).exists()
    steps = []
    resumed = run(tmp_path / "parts", callback=lambda progress: steps.append(progress.step))
    assert steps == [3, 4]
    assert not changed_weights(resumed, generator)
    assert not changed_weights(load_generator(tmp_path / "parts"), generator)
    validation = [json.loads((run / CARD).read_text())["validation"] for run in (folder, tmp_path / "parts")]
    assert validation[0] == validation[1]


def test_training_goes_on_from_a_generator_with_its_guide(tmp_path, whole):
    first, folder = whole
    again = run(tmp_path / "again", start_from=folder, learning_rate=0.0, steps=1)
    assert not changed_weights(again, first)
    further = run(tmp_path / "further", start_from=folder)
    assert any(name.startswith("guide.") for name in changed_weights(further, first))
    card = json.loads((tmp_path / "further" / CARD).read_text())
    assert card["training"]["start_from"] == "mine"
    assert card["steps_done"] == 4


@pytest.mark.slow
def test_training_goes_on_with_another_library_of_more_columns(tmp_path):
    run(tmp_path / "first")
    library = Library("more", ("mul", "cos", "add"), False, 6)
    settings = {"start_from": tmp_path / "first", "learning_rate": 0.0, "steps": 1, "n_validation": 2}
    further = pretrain(library, 6, tmp_path / "further", prior=PRIOR, n_datasets=4, n_groups=1, **settings)
    first, loaded = (load_generator(tmp_path / name) for name in ("first", "further"))
    assert further.library == loaded.library == library
    assert not changed_weights(loaded, further)
    assert torch.equal(loaded.decoder.order.weight[[2, 5]], first.decoder.order.weight[[2, 2]])
    at = [first.library.index[name] for name in ("mul", "add")]
    assert torch.equal(further.decoder.out.weight[[0, 2]], first.decoder.out.weight[at])
    assert not further.decoder.out.weight[1].any()  # of cos, which is to be learnt


@pytest.mark.parametrize(("config", "is_varied"), [(TINY, True), (NO_GUIDE, False)], ids=["guide", "none"])
def test_a_generator_with_a_guide_is_trained_on_varied_tables_by_default(tmp_path, config, is_varied):
    library = Library("mine", ("add", "sub", "mul", "div", "sin"), False, 3)
    run(tmp_path, library, config=config, prior=None, steps=1, n_validation=2)
    used = json.loads((tmp_path / CARD).read_text())["prior"]
    usual = Prior.varied_for if is_varied else Prior.default_for
    assert used == json.loads(json.dumps(asdict(usual(library, 3))))
    assert (used["inputs"] == "varied") == is_varied


def test_the_preset_of_training_is_one_of_cross_entropy():
    assert PRETRAINING_CONFIGS["base"].objective == "cross-entropy"
    with pytest.raises(ValueError, match="objective='guide' is unknown"):
        PretrainingConfig("guide")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps=0 must be a whole number of at least 1"),
        ({"steps": 2.5}, r"steps=2\.5 must be a whole number"),
        ({"n_datasets": "8"}, "n_datasets='8' must be a whole number"),
        ({"warmup": -1}, "warmup=-1 must be a whole number of at least 0"),
        ({"gradient_clip": -1.0}, r"gradient_clip=-1\.0 must be above 0"),
        ({"learning_rate": -1e-3}, r"learning_rate=-0\.001 must be at least 0"),
        ({"epsilon": 0.0}, r"epsilon=0\.0 must be above 0"),
        ({"baseline_alpha": 1.5}, r"baseline_alpha=1\.5 is a share"),
        ({"n_validation": 1}, "n_validation=1 must be at least 2"),
    ],
)
def test_settings_that_train_nothing_are_refused_before_anything_is_drawn(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        pretrain("koza", 2, tmp_path / "generator", **changes)
    assert not (tmp_path / "generator").exists()


# ---- curves -------------------------------------------------------------------------------------


def lines_of(svg):
    """The texts of a picture, the points of its lines by name, and its width."""
    plot = ElementTree.fromstring(svg)
    texts = ["".join(element.itertext()) for element in plot.iter("{http://www.w3.org/2000/svg}text")]
    groups = {group.get("id", ""): group for group in plot.iter("{http://www.w3.org/2000/svg}g")}
    paths = {
        name: group.find("{http://www.w3.org/2000/svg}path").get("d")
        for name, group in groups.items()
        if name.startswith(("log_likelihood", "hit", "guide"))
    }
    points = {name: re.findall(r"[ML] (\S+) (\S+)", path) for name, path in paths.items()}
    return texts, points, float(plot.get("viewBox").split()[2])


TITLES = ["nats of the true program", "share found in the first samples", "nats of the parent-child pairs"]


@pytest.mark.slow
def test_the_curves_of_a_guide_stand_beside_those_of_the_decoder(tmp_path, monkeypatch):
    monkeypatch.setattr("dgsr.pretraining.run.to_svg", to_svg)
    run(tmp_path)
    texts, lines, width = lines_of((tmp_path / CURVES).read_text())
    curves = json.loads((tmp_path / CARD).read_text())["curves"]
    # Three likelihoods; the shares of the first and of ten samples; the nats of the guide.
    assert [len(line) for line in lines.values()] == [len(curves)] * 8
    assert [text for text in texts if text in TITLES] == TITLES
    heights = [float(y) for _, y in lines["guide_nats_right"]]
    assert np.argmin(heights) == np.argmax([point["guide_nats_right"] for point in curves])
    points = [{name: value for name, value in point.items() if name not in NATS} for point in curves]
    texts, lines, narrow = lines_of(to_svg(points, 8))
    assert len(lines) == 5
    assert [text for text in texts if text in TITLES] == TITLES[:2]
    assert 3.0 * narrow == pytest.approx(2.0 * width)
