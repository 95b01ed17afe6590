"""Finds values that masks fill in, such as -1e9 in attention scores: they must not set others' tolerance."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.tensors.outputs import widen_small
from harness.tensors.single_pass import find_kernels
from harness.tensors.values import cut_slices

FAR = 30.0  # times the mean size of the other elements
LEAST_OTHERS = 1 / 64  # of all elements; fewer are what cancels beside usual values
MOST = 4
CHUNK = {"cpu": 1 << 18, "cuda": 1 << 25}  # on a GPU few slices: each costs several launches


@dataclass(frozen=True, slots=True)
class Fills:
    """`size` is the sum of the absolute values of the others; `has_special` means that infinity or NaN occurs."""

    values: tuple[float, ...] = ()
    has_special: bool = False
    size: float = 0.0

    @property
    def is_empty(self) -> bool:
        return not self.values and not self.has_special

    def zero(self, tensor: Tensor) -> Tensor:
        for value in self.values:
            tensor = tensor.masked_fill(tensor == value, 0.0)
        return tensor.nan_to_num(0.0, 0.0, 0.0) if self.has_special else tensor


def find_fills(values: Tensor, device: torch.device | None = None) -> Fills:
    """Find finite values, more than one, far larger than the others. `device` processes slices."""
    fills = Fills()
    device = device or values.device
    while len(fills.values) < MOST:
        extreme = _find_extreme(values, fills, device)
        if not math.isfinite(extreme):
            fills = Fills(has_special=True)
            continue
        others, size = _measure_others(extreme, values, fills, device)
        count = values.numel() - others
        is_common = count >= 2 and others >= LEAST_OTHERS * values.numel()
        if not (is_common and 0.0 < FAR * size <= abs(extreme) * others):
            return Fills(fills.values, fills.has_special, size + count * abs(extreme))
        fills = Fills((*fills.values, extreme), fills.has_special, size)
    return fills


def _find_extreme(values: Tensor, fills: Fills, device: torch.device) -> float:
    if fills.is_empty and (kernels := find_kernels(values)):
        least, most, special = kernels.find_extremes(values)
        return math.nan if special else max(least, most, key=abs)
    low, high = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(2))
    for part in _cut(values, fills, device):
        least, most = part.aminmax()
        low, high = torch.minimum(low, least), torch.maximum(high, most)
    return max(float(low), float(high), key=abs)


def _measure_others(extreme: float, values: Tensor, fills: Fills, device: torch.device) -> tuple[int, float]:
    if fills.is_empty and (kernels := find_kernels(values)):
        extremes, total = kernels.measure_others(values, extreme)
        return values.numel() - extremes, total
    count, size = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(2))
    for part in _cut(values, fills, device):
        is_extreme = part == extreme
        count += is_extreme.count_nonzero()
        size += torch.linalg.vector_norm(part.masked_fill(is_extreme, 0.0), 1, dtype=torch.float64)
    return values.numel() - int(count), float(size)


def _cut(values: Tensor, fills: Fills, device: torch.device) -> Iterator[Tensor]:
    for _, (part,) in cut_slices(values, elements=CHUNK[device.type]):
        yield fills.zero(widen_small(part.to(device)))
