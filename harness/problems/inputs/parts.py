"""Parts of tensors: which are changed at a time, and which are chosen at random."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from harness.protocol import count_span

FEW = 8  # most elements or slices of a sparse choice
PART = 1 << 23  # elements that are refilled at a time, or one row


def floating_tensors(value: object) -> Iterator[Tensor]:
    """Floating tensors to change in place; for expanded tensors the part that owns memory."""
    if isinstance(value, Tensor):
        if value.is_floating_point() and value.numel():
            tensor = value.detach()
            yield without_repeats(tensor if tensor.dim() else tensor.view(1))
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from floating_tensors(item)


def without_repeats(tensor: Tensor) -> Tensor:
    """The part of an expanded tensor that owns memory."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def is_dense(tensor: Tensor) -> bool:
    """True if the elements fill one stretch of memory."""
    return tensor.layout is torch.strided and count_span(tensor.shape, tensor.stride()) == tensor.numel()


def split_parts(tensor: Tensor, elements: int = PART) -> Iterator[Tensor]:
    """Slices of about so many elements along the longest dimension. Their length is even, as alternating signs need."""
    if not tensor.dim() or not tensor.numel():
        yield tensor
        return
    dimension = max(range(tensor.dim()), key=tensor.size)
    length = max(elements * tensor.size(dimension) // tensor.numel(), 2) & ~1
    yield from torch.split(tensor, length, dimension)


def choose_part(
    tensor: Tensor, generator: torch.Generator, *, only_slices: bool = False, dimension: int | None = None
) -> Tensor:
    """A non-empty mask that broadcasts to the tensor, of elements or of slices along one `dimension` (None: any).

    Half of the masks are sparse, so that a sample misses them; the others cover up to about half.
    """
    if dimension is None:
        dimension = draw(tensor.dim() + (not only_slices), generator)
    shape = [size if dimension in (index, tensor.dim()) else 1 for index, size in enumerate(tensor.shape)]
    count = torch.Size(shape).numel()
    most = max(1.0, min(count / 2, FEW) if draw(2, generator) else count / 2)
    chosen: float = most ** draw_share(generator)
    mask = torch.empty(count, dtype=torch.bool, device=tensor.device)
    for part in torch.split(mask, PART):
        part.copy_(torch.rand(part.numel(), generator=generator, device=tensor.device) < chosen / count)
    mask[draw(count, generator)] = True
    return mask.view(shape)


def draw(high: int, generator: torch.Generator) -> int:
    return int(torch.randint(high, (), generator=generator, device=generator.device))


def draw_share(generator: torch.Generator) -> float:
    """Between 0 and 1."""
    return float(torch.rand((), generator=generator, device=generator.device))
