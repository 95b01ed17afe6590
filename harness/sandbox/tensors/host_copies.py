"""Stride-preserving copies on another device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.problems.tensor_trees import map_tensors
from harness.protocol import count_span
from harness.sandbox.seeding import keep_seed

HOST = torch.device("cpu")


def copy_to(tensor: Tensor, device: torch.device) -> Tensor:
    """Copies the whole span, so that rows stay as far apart."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return tensor.detach().to(device, copy=True)
    span = tensor.detach().as_strided((count_span(tensor.shape, tensor.stride()),), (1,)).to(device, copy=True)
    return span.as_strided(tensor.shape, tensor.stride())


def copy_all_to(inputs: Sequence[Any], device: torch.device) -> tuple[Any, ...]:
    """Keeps the seed."""
    return keep_seed(map_tensors(tuple(inputs), lambda tensor: copy_to(tensor, device)), inputs)
