"""Seeds torch before a call, so that reference and worker draw the same random numbers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from harness.tensors.trees import list_tensors


class SeededInputs(tuple[Any, ...]):
    seed: int

    @classmethod
    def make(cls, inputs: Iterable[Any], seed: int) -> SeededInputs:
        made = cls(inputs)
        made.seed = seed
        return made


def seed_call(inputs: Iterable[Any], input_seed: int) -> SeededInputs:
    """Derive torch's seed from the secret seed of the inputs."""
    return SeededInputs.make(inputs, random.Random(f"call {input_seed}").getrandbits(62))


def read_seed(inputs: Sequence[Any]) -> int | None:
    return inputs.seed if isinstance(inputs, SeededInputs) else None


def keep_seed(changed: Iterable[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    seed = read_seed(inputs)
    return tuple(changed) if seed is None else SeededInputs.make(changed, seed)


@contextmanager
def seeded_call(model: nn.Module, inputs: Sequence[Any]) -> Iterator[None]:
    """Restore the generators afterwards."""
    seed = read_seed(inputs)
    if seed is None:
        yield
        return
    used = {
        tensor.device for tensor in chain(list_tensors(inputs), model.parameters(), model.buffers()) if tensor.is_cuda
    }
    with torch.random.fork_rng(devices=list(used)):
        torch.default_generator.manual_seed(seed)
        for device in used:
            torch.cuda.default_generators[device.index].manual_seed(seed)
        yield


def read_generators(device: torch.device) -> tuple[Tensor, ...]:
    """Their state advances if a call draws random numbers."""
    host = (torch.random.get_rng_state(),)
    return (*host, torch.cuda.get_rng_state(device)) if device.type == "cuda" else host


def have_advanced(before: Sequence[Tensor], device: torch.device) -> bool:
    return not all(torch.equal(one, other) for one, other in zip(before, read_generators(device), strict=True))
