"""Input distributions: same shapes, dtypes and strides, other values of floating tensors. `padded` keeps the values and
changes the memory layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

Fill = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
FEW = 8  # most elements or slices of a sparse mix
PADDING = 8  # elements between two rows of a padded view: rows stay aligned for vector loads
PART = 1 << 23  # elements that are refilled at a time, or one row
PART_BYTES = 32  # temporary memory per element of a part


def redistribute(value: Any, distribution: str, generator: torch.Generator) -> Any:
    """Refill floating tensors in nested lists, tuples and dicts in place."""
    if distribution == "padded":
        return pad_rows(value)
    for tensor in floating_tensors(value):
        for part in split_parts(tensor):
            part.copy_(_fill(part, distribution, generator))
    return value


def mix(value: Any, distribution: str, generator: torch.Generator) -> Any:
    """Refill random elements or slices of each floating tensor in place, so that sampling the inputs does not reveal
    them."""
    for tensor in floating_tensors(value):
        mask = choose_part(tensor, generator).expand_as(tensor)
        for part, chosen in zip(split_parts(tensor), split_parts(mask), strict=True):
            part.copy_(torch.where(chosen, _fill(part, distribution, generator), _widen(part)))
    return value


def _fill(part: torch.Tensor, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """8-bit formats are drawn in float32, since torch cannot draw them or compute with them."""
    values = FILLS[distribution](_widen(part), generator)
    if values.dtype is part.dtype:
        return values
    limits = torch.finfo(part.dtype)
    return values.clamp_(limits.min, limits.max)


def _widen(part: torch.Tensor) -> torch.Tensor:
    return part.float() if part.element_size() == 1 else part


def count_refill_bytes(value: Any) -> int:
    """Temporary memory of `redistribute` and `mix`: a mask, and the values of a part."""
    sizes = [tensor.numel() for tensor in floating_tensors(value)]
    return max((size + PART_BYTES * min(size, PART) for size in sizes), default=0)


def floating_tensors(value: object) -> Iterator[torch.Tensor]:
    """Floating tensors to change in place; for expanded tensors the part that owns memory."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() and value.numel():
            tensor = value.detach()
            yield without_repeats(tensor if tensor.dim() else tensor.view(1))
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from floating_tensors(item)


def split_parts(tensor: torch.Tensor, elements: int = PART) -> Iterator[torch.Tensor]:
    """Slices of about so many elements along the longest dimension. Their length is even, as `_alternating` needs."""
    if not tensor.dim() or not tensor.numel():
        yield tensor
        return
    dimension = max(range(tensor.dim()), key=tensor.size)
    length = max(elements * tensor.size(dimension) // tensor.numel(), 2) & ~1
    yield from torch.split(tensor, length, dimension)


def choose_part(
    tensor: torch.Tensor, generator: torch.Generator, *, only_slices: bool = False, dimension: int | None = None
) -> torch.Tensor:
    """A non-empty mask that broadcasts to the tensor, of elements or of slices along one `dimension` (None: any).

    Half of the masks are sparse, so that a sample misses them; the others cover up to about half.
    """

    def draw(high: int) -> int:
        return int(torch.randint(high, (), generator=generator, device=tensor.device))

    if dimension is None:
        dimension = draw(tensor.dim() + (not only_slices))
    shape = [size if dimension in (index, tensor.dim()) else 1 for index, size in enumerate(tensor.shape)]
    count = torch.Size(shape).numel()
    most = max(1.0, min(count / 2, FEW) if draw(2) else count / 2)
    chosen: float = most ** float(torch.rand((), generator=generator, device=tensor.device))
    mask = torch.empty(count, dtype=torch.bool, device=tensor.device)
    for part in torch.split(mask, PART):
        part.copy_(torch.rand(part.numel(), generator=generator, device=tensor.device) < chosen / count)
    mask[draw(count)] = True
    return mask.view(shape)


def pad_rows(value: Any) -> Any:
    """Return every tensor as a strided view of a buffer padded with NaN (integers: zero).

    Tensors with fewer than two rows stay dense.
    """
    if isinstance(value, torch.Tensor):
        return _pad_tensor(value)
    if isinstance(value, list):
        return [pad_rows(item) for item in value]
    if isinstance(value, tuple):
        return tuple(pad_rows(item) for item in value)
    if isinstance(value, dict):
        return {key: pad_rows(item) for key, item in value.items()}
    return value


def _pad_tensor(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    *rows, length = tensor.shape
    between = float("nan") if tensor.is_floating_point() or tensor.is_complex() else 0
    buffer = tensor.new_full((*rows, length + PADDING), between)
    view = buffer[..., PADDING:]
    view.copy_(tensor)
    return view


def without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """The part of an expanded tensor that owns memory."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _normal(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(given.shape, generator=generator, device=given.device, dtype=given.dtype)


def _uniform(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(given.shape, generator=generator, device=given.device, dtype=given.dtype) * 2 - 1


def _large(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return given * (100.0 if given.dtype == torch.float16 else 1000.0)  # the largest float16 is 65504


def _tiny(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return given * 1e-3


def _zeros(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.zeros_like(given)


def _draw_integers(given: torch.Tensor, high: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, high, given.shape, generator=generator, device=given.device).to(given.dtype)


def _ties(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return _draw_integers(given, 4, generator) - 1.5


def _integers(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return _draw_integers(given, 2, generator)


def _alternating(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Signs + - + - along the last dimension, so that sums cancel."""
    signs = torch.ones(given.shape[-1:], device=given.device, dtype=given.dtype)
    signs[..., 1::2] = -1
    return given.abs() * signs


FILLS: dict[str, Fill] = {
    "normal": _normal,
    "uniform": _uniform,
    "large": _large,
    "tiny": _tiny,
    "zeros": _zeros,
    "ties": _ties,
    "alternating": _alternating,
    "integers": _integers,
}
