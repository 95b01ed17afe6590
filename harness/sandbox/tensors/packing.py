"""Many tensors as few, which are copied and announced at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from harness.protocol import group_equal


def pack_by_dtype(tensors: Sequence[Tensor]) -> list[Tensor]:
    """One flat tensor for each dtype, in order of first appearance; a view of a single contiguous one."""
    groups = group_equal([tensor.dtype for tensor in tensors])
    return [_join([tensors[index].reshape(-1) for index in group]) for group in groups.values()]


def _join(flat: Sequence[Tensor]) -> Tensor:
    """By bytes, since not every dtype can be concatenated."""
    if len(flat) == 1:
        return flat[0]
    return torch.cat([one.view(torch.uint8) for one in flat]).view(flat[0].dtype)
