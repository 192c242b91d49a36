"""Weights on disk: what is written is read back, and anything else is refused with the mend."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import dgsr.generator.checkpoints as checkpoints
from dgsr import DGSRRegressor
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library, get_library
from dgsr.generator.checkpoints import (
    CARD,
    FORMAT_VERSION,
    WEIGHTS,
    header_of,
    list_generators,
    load_generator,
    save_generator,
    write_tensors,
)
from dgsr.generator.choice import find_generator
from dgsr.generator.config import INPUT_LAYOUT, GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.pretraining import pretrain
from searches import log_prob, tiny_guided_config, with_own

TINY = GeneratorConfig(
    encoder_width=8, encoder_heads=2, encoder_layers=1, n_inducing=4, n_latents=2,
    tree_embedding=4, tree_layers=1, decoder_width=8, decoder_heads=2, decoder_layers=1, max_length=12,
)  # fmt: skip
GUIDED = tiny_guided_config(12)
LIBRARY = Library("mine", ("mul", "add", "sin"), True, 2)
CONSTRAINTS = Constraints(2, 10, 1, length_loc=5.0, length_scale=2.0)
X, Y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)


@pytest.fixture
def generator():
    return Generator.untrained(LIBRARY, TINY, CONSTRAINTS, seed=4)


@pytest.fixture
def folder(tmp_path, generator):
    save_generator(generator, tmp_path / "saved", {"name": "saved"})
    return tmp_path / "saved"


def rewrite(folder, tensors=None, **header):
    """Write the weights file again with another header, parts of it as mappings."""
    given = header_of(Generator.untrained(LIBRARY, TINY, CONSTRAINTS, seed=4))
    for key, value in header.items():
        if value is None:
            del given[key]
        elif isinstance(value, dict):
            given[key] = json.dumps(json.loads(given[key]) | value)
        else:
            given[key] = value
    write_tensors(folder / WEIGHTS, tensors or load_file(folder / WEIGHTS), given)


def refused(folder, match=None):
    with pytest.raises(ValueError, match=match) as caught:
        load_generator(folder)
    message = str(caught.value)
    assert str(folder / WEIGHTS) in message
    assert "pretrain" in message
    return message


def test_a_loaded_generator_is_the_saved_one(folder, generator):
    loaded = load_generator(folder)
    assert loaded.library == LIBRARY
    assert loaded.config == TINY
    assert loaded.constraints == CONSTRAINTS
    assert not loaded.training
    state = generator.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.state_dict().items())
    population = generator.sample(X, Y, 50)
    np.testing.assert_array_equal(population.tokens, loaded.sample(X, Y, 50).tokens)
    np.testing.assert_array_equal(log_prob(generator, population, X, Y), log_prob(loaded, population, X, Y))


def test_loading_leaves_the_global_random_state_alone(folder):
    state = torch.get_rng_state()
    load_generator(folder)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("config", [TINY, GUIDED])
def test_the_default_type_of_torch_changes_no_number(tmp_path, config):
    save_generator(Generator.untrained(LIBRARY, config, CONSTRAINTS, seed=4), tmp_path, {})
    expected = load_generator(tmp_path).encode_dataset(X, Y).latents
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = load_generator(tmp_path).encode_dataset(X, Y).latents
        assert len(Generator.untrained(LIBRARY, config, CONSTRAINTS, seed=4).sample(X, Y, 3)) == 3
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(found, expected)


def test_a_path_may_be_text(folder):
    assert load_generator(str(folder)).library == LIBRARY


def test_saving_replaces_what_was_there(folder):
    other = Generator.untrained(get_library("koza", 3), TINY, Constraints(1, 12), seed=0)
    save_generator(other, folder, {"name": "other"})
    assert load_generator(folder).library == get_library("koza", 3)
    assert json.loads((folder / CARD).read_text()) == {"name": "other"}
    assert sorted(path.name for path in folder.iterdir()) == sorted([CARD, WEIGHTS])


@pytest.mark.parametrize("kept", [0, 3, 8, 100, 0.5, 0.999])
def test_a_truncated_file_is_refused(folder, kept):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    refused(folder, "damaged")


def test_a_file_with_bytes_too_many_is_refused(folder):
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes() + b"\0" * 16)
    refused(folder, "damaged")


@pytest.mark.parametrize("content", [b"garbage" * 50, b"\xff" * 200, b"\0" * 200, b"{}", "é".encode() * 99])
def test_garbage_is_refused(folder, content):
    (folder / WEIGHTS).write_bytes(content)
    refused(folder, "damaged")


def test_a_file_with_a_flipped_bit_is_refused(folder):
    content = (folder / WEIGHTS).read_bytes()
    for at in range(0, len(content), 149):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        (folder / WEIGHTS).write_bytes(flipped)
        refused(folder)


def test_a_file_that_lost_its_digest_is_refused_and_one_from_before_digests_is_read(folder, generator):
    tensors, header = load_file(folder / WEIGHTS), header_of(generator)
    save_file(tensors, folder / WEIGHTS, metadata=header)
    refused(folder, "has lost its digest")
    save_file(tensors, folder / WEIGHTS, metadata=header | {"format_version": "1"})
    assert torch.equal(load_generator(folder).decoder.out.bias, tensors["decoder.out.bias"])


def test_a_pickle_is_refused_and_not_run(folder, tmp_path):
    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    for write in (lambda path: path.write_bytes(pickle.dumps(Harm())), lambda path: torch.save(Harm(), path)):
        write(folder / WEIGHTS)
        refused(folder, "damaged")
        assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("version", [str(FORMAT_VERSION + 1), "99", "one", ""])
def test_another_format_version_is_refused(folder, version):
    rewrite(folder, format_version=version)
    message = refused(folder)
    assert ("update dgsr" in message) == version.isdigit()


def test_a_header_from_before_linear_scaling_and_standardised_targets_is_read(folder):
    old = header_of(Generator.untrained(LIBRARY, TINY, CONSTRAINTS, seed=4))
    config, constraints = json.loads(old["config"]), json.loads(old["constraints"])
    del config["target"], constraints["linear_scaling"]
    rewrite(folder, config=json.dumps(config), constraints=json.dumps(constraints))
    generator = load_generator(folder)
    assert (generator.config.target, generator.constraints.linear_scaling) == ("raw", True)


@pytest.mark.parametrize(
    "former", [{"input_encoding": "float"}, {"remainders": False, "reader_width": 32}], ids=str
)
def test_a_header_with_former_settings_of_the_same_network_is_read(folder, former):
    rewrite(folder, config=former)
    assert load_generator(folder).config == TINY


@pytest.mark.parametrize(
    ("name", "value"), [("input_encoding", "bits"), ("input_encoding", "moments"), ("remainders", True)]
)
def test_weights_of_a_network_that_is_no_more_are_refused(folder, name, value):
    rewrite(folder, config={name: value})
    refused(folder, f"{name}={value!r} is no longer supported")


def test_weights_of_an_encoder_that_is_no_more_are_refused(folder):
    rewrite(folder, config={"encoder": "columns"})
    refused(folder, "encoder='columns' must be one of rows, descriptions")


def test_a_header_from_before_the_layout_of_inputs_is_of_the_first_layout(folder, monkeypatch):
    rewrite(folder, input_layout=None)
    load_generator(folder)
    monkeypatch.setattr(checkpoints, "INPUT_LAYOUT", 2)
    refused(folder, "layout 1.* computes those of layout 2")


@pytest.mark.parametrize("version", [0, 2, 99, "1", None])
def test_weights_for_inputs_of_another_layout_are_refused(folder, version):
    rewrite(folder, input_layout={"version": version})
    message = refused(folder, "of layout 1; install a version that has layout")
    assert f"inputs of layout {version!r}" in message


@pytest.mark.parametrize("library", [LIBRARY, get_library("koza", 2)], ids=["constants", "none"])
@pytest.mark.parametrize("config", [TINY, GUIDED], ids=["rows", "descriptions"])
def test_weights_for_inputs_of_other_names_are_refused(tmp_path, library, config):
    generator = Generator.untrained(library, config, CONSTRAINTS, seed=4)
    save_generator(generator, tmp_path, {})
    load_generator(tmp_path)
    names = generator.input_names()
    assert names.keys() >= {"token", "row" if config is TINY else "pair of the guide"}
    for part in names:
        swapped = [*names[part]]
        swapped[0], swapped[1] = swapped[1], swapped[0]
        for other in (swapped, names[part][:-1], [*names[part], "more"]):
            changed = json.dumps({"version": INPUT_LAYOUT, "names": names | {part: other}})
            header = header_of(generator) | {"input_layout": changed}
            write_tensors(tmp_path / WEIGHTS, load_file(tmp_path / WEIGHTS), header)
            assert f" of a {part}, and this version" in refused(tmp_path, "install the version that wrote it")


@pytest.mark.parametrize(
    "layout",
    ["nonsense", "3", "[]", "{}", '{"version": 1}', '{"version": 1, "names": 3}',
     '{"version": 1, "names": {"row": []}}', "[" * 5000],
)  # fmt: skip
def test_a_layout_that_cannot_be_read_is_refused(folder, layout):
    rewrite(folder, input_layout=layout)
    refused(folder)


@pytest.mark.parametrize("key", ["format_version", "library", "config", "constraints"])
def test_a_header_without_an_entry_is_refused(folder, key):
    rewrite(folder, **{key: None})
    refused(folder, key)


def test_a_weights_file_of_something_else_is_refused(folder):
    save_file({"weight": torch.ones(3)}, folder / WEIGHTS)
    refused(folder, "not a generator")


@pytest.mark.parametrize("key", ["library", "config", "constraints"])
@pytest.mark.parametrize("value", ["[]", "3", "nonsense", "[" * 5000, '{"a": }', {"wings": 2}])
def test_entries_that_are_not_known_are_refused(folder, key, value):
    rewrite(folder, **{key: value})
    refused(folder)


@pytest.mark.parametrize(
    "header",
    [
        {"config": {"encoder_width": 1_000_000_000}},
        {"config": {"encoder_width": 1_000_000}},
        {"config": {"encoder_width": 60_000}},
        {"config": {"encoder_layers": 900_000}},
        {"config": {"encoder_layers": -1}},
        {"config": {"decoder_width": 0}},
        {"config": {"decoder_width": 16}},
        {"config": {"decoder_heads": 3}},
        {"config": {"max_length": 500_000}},
        {"config": {"encoder_width": 8.5}},
        {"config": {"encoder_width": "8"}},
        {"config": {"encoder_width": None}},
        {"config": {"input_encoding": "ascii"}},
        {"config": {"target": "ascii"}},
        {"library": {"n_variables": 1_000_000}},
        {"library": {"n_variables": 3}},
        {"library": {"operators": ["add", "eval"]}},
        {"library": {"operators": [["add"]]}},
        {"library": {"operators": 3}},
        {"library": {"n_variables": 2.0}},
        {"library": {"n_variables": True}},
        {"library": {"name": 3}},
        {"library": {"has_constants": "yes"}},
        {"library": {"operators": {"mul": 0, "add": 1, "sin": 2}}},
        {"library": {"user_operators": ["twice"]}},
        {"library": {"user_operators": []}},
        {"config": {"encoder_layers": True}},
        {"constraints": {"linear_scaling": 1}},
        {"constraints": {"min_length": 2.5}},
        {"constraints": {"max_constants": 1e308}},
        {"constraints": {"max_constants": 10**30}},
        {"constraints": {"length_loc": ["x"]}},
        {"constraints": {"length_loc": float("nan")}},
        {"constraints": {"length_scale": float("inf")}},
        {"constraints": {"min_length": 0}},
        {"constraints": {"max_length": 13}},
    ],
    ids=str,
)
def test_sizes_that_are_absurd_or_not_those_of_the_weights_are_refused(folder, header):
    rewrite(folder, **header)
    refused(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(folder, value):
    tensors = load_file(folder / WEIGHTS)
    tensors["decoder.out.bias"][1] = value
    rewrite(folder, tensors)
    refused(folder, "not finite")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.float8_e4m3fn], ids=str)
def test_weights_of_another_type_are_refused(folder, generator, dtype):
    tensors = load_file(folder / WEIGHTS)
    tensors["decoder.out.bias"] = tensors["decoder.out.bias"].to(dtype)
    save_file(tensors, folder / WEIGHTS, metadata=header_of(generator) | {"format_version": "1"})
    refused(folder, "not of the types|no attribute 'float8_e4m3fn'")


def test_missing_and_additional_weights_are_refused(folder):
    tensors = load_file(folder / WEIGHTS)
    rewrite(folder, {name: tensor for name, tensor in tensors.items() if name != "decoder.out.bias"})
    refused(folder)
    rewrite(folder, tensors | {"decoder.more": torch.ones(2)})
    refused(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_a_damaged_card_is_named_by_the_fit_that_reads_it(folder, content):
    (folder / CARD).write_bytes(content)
    with pytest.raises(ValueError, match=r"card\.json is damaged .*; fetch it anew, or remove it"):
        DGSRRegressor(LIBRARY, generator=folder).fit(X, Y)


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"has no weights\.safetensors; give a folder that pretrain"
    ) as caught:
        load_generator(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder in which three generators are shipped, and one is not whole."""
    root = tmp_path / "pretrained"
    monkeypatch.setattr(checkpoints, "_shipped_folders", lambda: [root])
    for name, preset, n_variables in (("b", "koza", 5), ("a", "koza", 2), ("c", "synth", 3)):
        library = get_library(preset, n_variables)
        generator = Generator.untrained(library, TINY, Constraints(1, 12), seed=0)
        described = {
            "operators": list(library.operators), "has_constants": False, "n_variables": n_variables
        }  # fmt: skip
        save_generator(generator, root / name, {"library": described, "config": asdict(TINY)})
    (root / "half").mkdir()
    (root / "half" / CARD).write_text("{}")
    return root


def test_names_are_listed_in_order_and_load(shipped):
    assert [info.name for info in list_generators()] == ["a", "b", "c"]
    assert list_generators()[0].path == shipped / "a"
    assert load_generator("b").library == get_library("koza", 5)


def test_an_unknown_name_lists_the_known_ones(shipped):
    with pytest.raises(ValueError, match=r"'nobody' is neither a folder nor a name; known names: a, b, c\."):
        load_generator("nobody")


def test_a_damaged_card_that_is_shipped_is_named(shipped):
    (shipped / "a" / CARD).write_text("{")
    with pytest.raises(ValueError, match=r"a.card\.json is damaged"):
        load_generator("b")


def test_a_folder_may_be_one_of_the_home_and_no_text_is_none(shipped, monkeypatch):
    monkeypatch.setenv("HOME", str(shipped))
    monkeypatch.setenv("USERPROFILE", str(shipped))
    assert load_generator("~/b").library == get_library("koza", 5)
    with pytest.raises(ValueError, match="generator='' is neither a folder nor a name"):
        load_generator("")


def test_an_unknown_name_is_refused_where_nothing_is_shipped(monkeypatch):
    monkeypatch.setattr(checkpoints, "_shipped_folders", list)
    with pytest.raises(ValueError, match="known names: none"):
        load_generator("nobody")


@pytest.mark.parametrize(
    ("library", "found"),
    [
        (get_library("koza", 1), "a"),
        (get_library("koza", 2), "a"),
        (get_library("koza", 3), "b"),
        (get_library("koza", 6), None),
        (get_library("synth", 2), "c"),
        (get_library("koza-const", 2), None),
    ],
    ids=lambda value: value.name if isinstance(value, Library) else str(value),
)
def test_the_generator_of_the_fewest_variables_that_fits_is_found(shipped, library, found):
    assert find_generator(library) == found


def test_a_library_of_another_operator_has_no_generator(shipped):
    assert find_generator(with_own(get_library("koza", 2))) is None


@pytest.mark.slow
@pytest.mark.search
def test_wider_data_get_the_widest_generator_that_reads_any_number_of_columns(tmp_path, monkeypatch):
    for name, n_variables in (("narrow", 2), ("wide", 3)):
        library = get_library("koza", n_variables)
        generator = Generator.untrained(library, GUIDED, Constraints(1, 12), 0)
        description = {key: getattr(library, key) for key in ("name", "operators", "has_constants")}
        card = {"library": {**description, "n_variables": n_variables}, "config": asdict(GUIDED)}
        save_generator(generator, tmp_path / name, card)
    monkeypatch.setattr(checkpoints, "_shipped_folders", lambda: [tmp_path])
    found = {d: find_generator(get_library("koza", d)) for d in (1, 2, 3, 4, 12)}
    assert found == {1: "narrow", 2: "narrow", 3: "wide", 4: "wide", 12: "wide"}
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (20, 7))
    model = DGSRRegressor("koza", max_evaluations=600, max_length=12, random_state=0)
    assert model.fit(X, X[:, 5] * np.exp(X[:, 6])).generator_ == "wide"


def test_a_save_that_is_interrupted_leaves_a_generator_that_loads(folder, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    other = Generator.untrained(get_library("koza", 3), TINY, Constraints(1, 12), seed=0)
    monkeypatch.setattr("os.fsync", interrupt)  # the new file is not yet at its place then
    with pytest.raises(KeyboardInterrupt):
        save_generator(other, folder, {})
    assert load_generator(folder).library == LIBRARY


def test_a_generator_of_users_operators_is_not_written(tmp_path):
    library = with_own(LIBRARY)
    with pytest.raises(ValueError, match="not twice; use a library without"):
        save_generator(Generator.untrained(library, TINY, CONSTRAINTS, seed=4), tmp_path / "own", {})
    with pytest.raises(ValueError, match="not twice"):
        pretrain(library, 2, tmp_path / "own")
