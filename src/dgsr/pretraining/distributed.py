"""Communication between processes that train one generator; with one process these functions do nothing.

``torchrun --nproc-per-node=2 --no-python dgsr pretrain ...`` starts the processes, and torch's process group
adds up their gradients. A network of this size leaves most of a GPU idle, so several processes may share one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import distributed, nn


@contextmanager
def process_group(device: str) -> Iterator[None]:
    """Join the group of processes if torchrun has started several."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or distributed.is_initialized():
        yield
        return
    n_here = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))  # processes on this machine
    has_own_gpu = device.startswith("cuda") and n_here <= torch.cuda.device_count()
    distributed.init_process_group("nccl" if has_own_gpu else "gloo")
    try:
        yield
    finally:
        distributed.destroy_process_group()


def take_device(device: str) -> None:
    """Distribute the processes that torchrun has started on this machine over its GPUs."""
    if device == "cuda" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())


def rank() -> int:
    """Return the number of this process; process 0 writes the files."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def n_processes() -> int:
    """Return the number of processes."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def add_up(loss: float, parameters: Iterable[nn.Parameter]) -> float:
    """Add up the gradients of all processes in place, and return the sum of their losses."""
    if n_processes() == 1:
        return loss
    parameters = list(parameters)
    # A parameter that no group of this process used has no gradient.
    own = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([*(gradient.flatten() for gradient in own), own[0].new_tensor([loss])])
    # The backend gloo adds up in the memory of the processor.
    summed = flat.cpu() if distributed.get_backend() == "gloo" else flat
    distributed.all_reduce(summed)
    sizes = [parameter.numel() for parameter in parameters]
    *gradients, total = summed.to(flat.device).split([*sizes, 1])
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.view_as(parameter).clone()
    return float(total)


def any_of(reason: bool) -> bool:
    """Return whether `reason` is true in any process, so that all of them end together."""
    if n_processes() == 1:
        return reason
    flag = torch.tensor([float(reason)], device="cuda" if distributed.get_backend() == "nccl" else "cpu")
    distributed.all_reduce(flag)
    return bool(flag.item())
