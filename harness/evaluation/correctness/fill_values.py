"""Finds values that masks fill in, such as -1e9 in attention scores. No error has their size, so they must not set the
tolerance of the elements beside them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from harness.sandbox.tensors.outputs import cut_slices, widen_small

FAR = 30.0  # times the mean size of the other elements
LEAST_OTHERS = 1 / 64  # of all elements; fewer are what cancels beside usual values
MOST = 4
CHUNK = {"cpu": 1 << 18, "cuda": 1 << 23}

Fills = tuple[float, ...]


def find_fills(values: Tensor, device: torch.device | None = None) -> Fills:
    """Finite values that occur more than once, far larger than the others. `device`: for slices; None: of `values`."""
    fills: Fills = ()
    device = device or values.device
    while len(fills) < MOST:
        extreme = _find_extreme(values, fills, device)
        if extreme == 0.0 or not _is_fill(extreme, values, fills, device):
            break
        fills += (extreme,)
    return fills


def zero_fills(values: Tensor, fills: Fills) -> Tensor:
    """With 0 for fills, infinity and NaN."""
    for fill in fills:
        values = torch.where(values == fill, 0.0, values)
    return values if is_finite(values) else values.nan_to_num(0.0, 0.0, 0.0)


def is_finite(values: Tensor) -> bool:
    """By the sum, in one pass; an overflow is False too."""
    return bool(values.sum().isfinite())


def _find_extreme(values: Tensor, fills: Fills, device: torch.device) -> float:
    low, high = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(2))
    for part in _cut(values, device):
        least, most = zero_fills(part, fills).aminmax()
        low, high = torch.minimum(low, least), torch.maximum(high, most)
    return max(float(low), float(high), key=abs)


def _is_fill(extreme: float, values: Tensor, fills: Fills, device: torch.device) -> bool:
    count = torch.zeros((), dtype=torch.int64, device=device)
    for part in _cut(values, device):
        count += (part == extreme).count_nonzero()
    others = values.numel() - int(count)
    if int(count) < 2 or others < LEAST_OTHERS * values.numel():
        return False
    total = torch.zeros((), dtype=torch.float64, device=device)
    for part in _cut(values, device):
        total += zero_fills(part, (*fills, extreme)).abs().sum(dtype=torch.float64)
    return 0.0 < FAR * float(total) <= abs(extreme) * others


def _cut(values: Tensor, device: torch.device) -> Iterator[Tensor]:
    for _, (part,) in cut_slices(values, elements=CHUNK[device.type]):
        yield widen_small(part.to(device))
