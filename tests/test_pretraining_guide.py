"""Training of the guide: it alone learns, and its folder says what it is a guide for."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library
from dgsr.generator.checkpoints import CARD, CURVES, load_generator, save_generator
from dgsr.generator.config import GUIDE_WIDTH
from dgsr.generator.generator import Generator
from dgsr.generator.guide.descriptions import describe
from dgsr.kernels.random import new_state
from dgsr.pretraining import PRETRAINING_CONFIGS, PretrainingConfig, Trainer, pretrain
from dgsr.pretraining.curves import to_svg
from dgsr.pretraining.decontamination import nothing_held_out
from dgsr.pretraining.guide import guide_nats, measure_guide
from dgsr.pretraining.prior import Prior
from dgsr.problems import list_sets
from searches import tiny_guided_config

pytestmark = pytest.mark.search

torch.set_num_threads(1)

TINY = tiny_guided_config(8)
NO_GUIDE = replace(TINY, guide_width=0, guide_heads=4, guide_layers=1)
LIBRARY = Library("mine", ("add", "mul", "sin"), False, 3)
LIMITS = Constraints(1, 8)
PRIOR = Prior(min_leaves=2, max_leaves=3)


def untrained(config=TINY):
    return Generator.untrained(LIBRARY, config, LIMITS, 0)


def drawn_datasets(n, n_variables=3, seed=1):
    return PRIOR.draw(n, 40, n_variables, LIBRARY, LIMITS, new_state(seed))


def run(out, **settings):
    defaults = {
        "config": TINY, "prior": PRIOR, "constraints": LIMITS, "training": "guide", "steps": 4, "warmup": 2,
        "n_datasets": 8, "n_groups": 2, "max_samples": 30, "n_validation": 4, "random_state": 3,
    }  # fmt: skip
    return pretrain(LIBRARY, 3, out, **(defaults | settings))


def trained_part(generator, before):
    """Names of the weights that differ."""
    given = before.state_dict()
    return {n for n, t in generator.state_dict().items() if n not in given or not torch.equal(t, given[n])}


# ---- the loss -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_the_loss_is_that_of_every_pair_of_parent_and_child(shift):
    generator, n = untrained(), 40  # more than are described at once
    drawn = drawn_datasets(n, 2)
    programs = drawn.programs
    with torch.no_grad():
        for parameter in generator.guide.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        found = guide_nats(generator, drawn, 2, shift)
        expected = []
        for b in range(n):
            data = ((b + shift) % n,)
            X, y = (torch.from_numpy(values[data][None]) for values in (drawn.X[:, :, :2], drawn.y))
            log_probs = generator.guide(describe(X, y))[0]
            open_parents, nats = [len(LIBRARY.operators)], 0.0
            for token in programs.tokens[b, : programs.lengths[b]].tolist():
                nats -= float(log_probs[open_parents.pop(), token])
                open_parents += [token] * LIBRARY.tokens[token].arity
            assert not open_parents
            expected.append(nats)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert np.ptp(expected) > 0.5


def test_columns_that_do_not_count_are_not_shown():
    generator, drawn = untrained(), drawn_datasets(6, 2)
    drawn.X[:, :, 2] = np.random.default_rng(0).normal(size=drawn.X.shape[:2])
    with torch.no_grad():
        shown = guide_nats(generator, drawn, 2)
        drawn.X[:, :, 2] = drawn.y
        assert torch.equal(guide_nats(generator, drawn, 2), shown)


def test_a_generator_without_a_guide_is_refused_with_the_mend():
    with pytest.raises(ValueError, match="with_guide"):
        guide_nats(untrained(NO_GUIDE), drawn_datasets(2), 3)


# ---- training -----------------------------------------------------------------------------------


def test_training_the_guide_lowers_its_nats_and_leaves_all_other_weights_alone():
    generator, before = untrained(), untrained()
    held_out = drawn_datasets(60, seed=2)
    settings = PretrainingConfig(
        "guide", steps=50, n_datasets=24, n_groups=1, learning_rate=0.01, warmup=5, min_samples=30
    )
    trainer = Trainer(generator, PRIOR, settings, nothing_held_out(3), 0)
    first = measure_guide(generator, held_out, 3)
    losses = [trainer.run_step() for _ in range(50)]
    last = measure_guide(generator, held_out, 3)
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:3])
    assert last["guide_nats_right"] < 0.7 * first["guide_nats_right"]
    # It learns from the data, and not the prior alone.
    assert abs(first["guide_nats_right"] - first["guide_nats_wrong"]) < 0.1
    assert last["guide_nats_right"] < last["guide_nats_wrong"] - 0.3
    changed = trained_part(generator, before)
    assert changed
    assert all(name.startswith("guide.") for name in changed)
    assert len(changed) > 0.9 * len(list(generator.guide.parameters()))


def test_other_objectives_leave_the_guide_alone():
    generator, before = untrained(), untrained()
    settings = PretrainingConfig("cross-entropy", steps=2, n_datasets=8, weight_decay=0.0)
    trainer = Trainer(generator, PRIOR, settings, nothing_held_out(3), 0)
    for _ in range(2):
        trainer.run_step()
    changed = trained_part(generator, before)
    assert changed
    assert not any(name.startswith("guide.") for name in changed)


@pytest.mark.parametrize("n_groups", [1, 2])
def test_a_group_adds_its_share_of_the_gradient(n_groups):
    generator = untrained()
    settings = PretrainingConfig("guide", steps=1, n_datasets=8, n_groups=n_groups)
    trainer = Trainer(generator, PRIOR, settings, nothing_held_out(3), 0)
    batch = trainer.stream[0]
    assert len(batch.drawn.y) == 8 // n_groups
    loss = trainer._guide(batch)
    found = [parameter.grad.clone() for parameter in generator.guide.parameters()]
    generator.zero_grad()
    expected = guide_nats(generator, batch.drawn, batch.n_variables).mean()
    (expected / n_groups).backward()
    assert loss == pytest.approx(expected.item(), rel=1e-6)
    for parameter, gradient in zip(generator.guide.parameters(), found, strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def test_a_guide_is_trained_on_a_generator_that_was_shipped_without_one(tmp_path):
    plain = untrained(NO_GUIDE)
    save_generator(plain, tmp_path / "plain", {"name": "plain", "library": LIBRARY.to_json(), "note": "kept"})
    guided = run(tmp_path / "guided", start_from=tmp_path / "plain")
    assert guided.config == NO_GUIDE.with_guide()
    assert guided.config.guide_width == GUIDE_WIDTH
    loaded = load_generator(tmp_path / "guided")
    given = plain.state_dict()
    for name, tensor in loaded.state_dict().items():
        assert name.startswith("guide.") or torch.equal(tensor, given[name]), name
    untouched = plain.with_guide(3)
    assert trained_part(loaded, untouched) >= {"guide.of_tokens.weight", "guide.pairs.0.weight"}

    card = json.loads((tmp_path / "guided" / CARD).read_text())
    assert {name: card[name] for name in ("name", "note", "library")} == {
        "name": "guided",
        "note": "kept",
        "library": json.loads(json.dumps(LIBRARY.to_json())),
    }
    assert card["config"] == asdict(guided.config)
    part = card["guide"]
    assert part["training"]["objective"] == "guide"
    assert (part["training"]["seed"], part["training"]["start_from"]) == (3, "plain")
    assert (part["steps_done"], part["equations_seen"]) == (4, 32)
    assert part["validation"].keys() == {"guide_nats_right", "guide_nats_wrong"}
    assert part["held_out_sets"] == list_sets()
    assert part["curves"][-1]["step"] == 4
    assert "training" not in card
    assert "validation" not in card


def test_the_card_of_a_generator_that_begins_with_its_guide_is_its_own(tmp_path):
    generator = run(tmp_path / "mine")
    assert generator.config == TINY
    card = json.loads((tmp_path / "mine" / CARD).read_text())
    assert "guide" not in card
    assert card["name"] == "mine"
    assert card["training"]["objective"] == "guide"
    assert card["validation"].keys() == {"guide_nats_right", "guide_nats_wrong"}


def test_training_of_a_guide_goes_on_from_one_that_is_there(tmp_path):
    first = run(tmp_path / "first")
    again = run(tmp_path / "again", start_from=tmp_path / "first", learning_rate=0.0, steps=1)
    assert not trained_part(again, first)
    assert json.loads((tmp_path / "again" / CARD).read_text())["guide"]["steps_done"] == 1


def test_a_training_on_another_generator_is_resumed(tmp_path):
    def interrupt(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    save_generator(untrained(NO_GUIDE), tmp_path / "plain", {})
    whole = run(tmp_path / "whole", start_from=tmp_path / "plain")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", start_from=tmp_path / "plain", callback=interrupt)
    steps = []
    resumed = run(tmp_path / "parts", start_from=tmp_path / "plain", callback=lambda p: steps.append(p.step))
    assert steps == [3, 4]
    assert not trained_part(resumed, whole)
    assert not trained_part(load_generator(tmp_path / "parts"), whole)


def test_the_preset_trains_the_guide():
    assert PRETRAINING_CONFIGS["guide"].objective == "guide"


# ---- curves -------------------------------------------------------------------------------------


def lines_of(svg):
    plot = ElementTree.fromstring(svg)
    texts = [element.text for element in plot.iter() if element.tag.endswith("text")]
    lines = [e.get("points").split() for e in plot.iter() if e.tag.endswith("polyline")]
    return texts, lines, float(plot.get("viewBox").split()[2])


def test_the_curves_of_a_guide_are_its_nats_alone(tmp_path):
    run(tmp_path)
    texts, lines, width = lines_of((tmp_path / CURVES).read_text())
    curves = json.loads((tmp_path / CARD).read_text())["curves"]
    assert [len(line) for line in lines] == [len(curves)] * 2
    assert "nats of the parent-child pairs" in texts
    assert "nats of the true program" not in texts
    heights = [float(point.split(",")[1]) for point in lines[0]]
    assert np.argmin(heights) == np.argmax([point["guide_nats_right"] for point in curves])
    others = {"log_likelihood_right": -3.0, "log_likelihood_none": -4.0, "log_likelihood_wrong": -5.0}
    points = [{"step": step, **others, "hit_1": 0.1 * step} for step in (1, 2)]
    texts, lines, wide = lines_of(to_svg(points, 8))
    assert len(lines) == 4
    assert "nats of the parent-child pairs" not in texts
    assert wide == 2.0 * width
