"""The stream of training data, and several processes on one training."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.pretraining import PretrainingConfig, distributed
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior
from dgsr.pretraining.stream import Stream, column_shares

LIBRARY, CONSTRAINTS = get_library("koza", 3), Constraints(1, 12)


@pytest.fixture(scope="module")
def stream():
    config = PretrainingConfig(n_datasets=24, n_groups=3, min_samples=5, max_samples=40)
    return new_stream(config)


def new_stream(config):
    excluded = benchmark_decontamination(LIBRARY, CONSTRAINTS)
    return Stream(LIBRARY, CONSTRAINTS, Prior(), config, excluded, seed=4)


def same(one, other):
    return (
        one.n_variables == other.n_variables
        and np.array_equal(one.drawn.X, other.drawn.X)
        and np.array_equal(one.drawn.y, other.drawn.y)
        and np.array_equal(one.drawn.programs.tokens, other.drawn.programs.tokens)
    )


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # on a machine of one core
@pytest.mark.parametrize("n_workers", [0, 2])
def test_a_batch_depends_on_its_number_alone(stream, n_workers):
    numbers = [5, 0, 11, 3]
    batches = list(stream.batches(numbers, n_workers))
    assert all(same(batch, stream[number]) for batch, number in zip(batches, numbers, strict=True))
    assert not same(batches[0], batches[1])


def test_the_groups_of_a_mini_batch_differ_in_rows_and_variables(stream):
    batches = [stream[number] for number in range(60)]
    assert all(len(batch.drawn.y) == 8 for batch in batches)
    assert {batch.n_variables for batch in batches} == {1, 2, 3}
    rows = [batch.drawn.y.shape[1] for batch in batches]
    assert 5 <= min(rows) < 8
    assert 25 < max(rows) <= 40
    for batch in batches:  # no equation has a variable its data do not
        used = batch.drawn.programs.tokens - LIBRARY.first_variable
        inside = np.arange(used.shape[1]) < batch.drawn.programs.lengths[:, None]
        assert used[inside].max() < batch.n_variables


TRAINING = """
import sys, torch
from pathlib import Path
from dgsr.generator.config import GeneratorConfig
from dgsr.pretraining import pretrain

torch.set_num_threads(1)
config = GeneratorConfig(
    encoder="descriptions", encoder_width=8, encoder_heads=2, encoder_layers=1, n_latents=1,
    tree_embedding=4, decoder_width=8, decoder_heads=2, decoder_layers=1, max_length=10,
)
pretrain("koza", 2, Path(sys.argv[1]), config=config, steps=int(sys.argv[2]), n_datasets=12, n_groups=3,
         n_validation=4, random_state=3, save_every=0.0, n_workers=int(sys.argv[3]))
"""


def weights(folder):
    from safetensors.torch import load_file

    return load_file(folder / "weights.safetensors")


def train(folder, steps, n_workers=0, processes=1):
    command = [sys.executable, "-c", TRAINING]
    if processes > 1:
        script = folder.parent / "train.py"
        script.write_text(TRAINING)
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={processes}",
        ]
        command.append(str(script))
    done = subprocess.run([*command, str(folder), str(steps), str(n_workers)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return weights(folder)


@pytest.mark.slow
def test_two_processes_train_what_one_does_and_go_on_from_its_files(tmp_path):
    """Three groups a mini-batch: one process has two of them, the other one."""
    alone = train(tmp_path / "alone", 6)
    together = train(tmp_path / "together", 3, processes=2)
    assert not torch.equal(together["decoder.out.weight"], alone["decoder.out.weight"])
    together = train(tmp_path / "together", 6, n_workers=1, processes=2)
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, atol=2e-5, rtol=1e-3)


def test_tables_of_more_than_the_usual_columns_are_fewer_the_more_they_have():
    np.testing.assert_allclose(column_shares(4, 5), [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(column_shares(4, 4), column_shares(4, 5))
    shares = column_shares(12, 3)
    np.testing.assert_allclose(shares[:3], shares[0] * np.array([1.0, 2.0, 3.0]))
    assert shares[5] == pytest.approx(shares[2] / 2**4)
    assert shares[11] == pytest.approx(shares[5] / 2**4)
    assert shares.sum() == pytest.approx(1.0)
    config = PretrainingConfig(n_datasets=8, n_groups=1, usual_columns=1)
    stream = new_stream(config)
    columns = [stream[number].n_variables for number in range(60)]
    assert columns.count(1) > 45
    assert max(columns) > 1


@pytest.mark.parametrize(("n_gpus", "backend", "gpu"), [(1, "gloo", 0), (2, "gloo", 1), (4, "nccl", 3)])
def test_processes_that_share_a_gpu_add_up_in_the_memory_of_the_processor(monkeypatch, n_gpus, backend, gpu):
    begun, taken = [], []
    for name, value in (("WORLD_SIZE", "8"), ("LOCAL_WORLD_SIZE", "4"), ("LOCAL_RANK", "3")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(torch.distributed, "init_process_group", begun.append)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    distributed.take_device("cuda")
    with distributed.process_group("cuda"):
        pass
    assert (begun, taken) == ([backend], [gpu])
