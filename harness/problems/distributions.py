"""Other values for the inputs of a problem: same shapes, dtypes and strides, another distribution.

Only floating tensors change; integers (indices, targets, masks) and Python scalars stay as the problem gave them.
`padded` is the other way round: the same values of every tensor, in another place in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Fill = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
PADDING = 8  # elements between two rows of a padded view: rows stay aligned for vector loads


def redistribute(value: Any, distribution: str, generator: torch.Generator) -> Any:
    """`value` with its floating tensors refilled in place, or as `pad_rows` gives it. Nested lists, tuples and dicts
    are walked."""
    if distribution == "padded":
        return pad_rows(value)
    if isinstance(value, torch.Tensor):
        _refill(value, FILLS[distribution], generator)
    elif isinstance(value, list | tuple):
        for item in value:
            redistribute(item, distribution, generator)
    elif isinstance(value, dict):
        for item in value.values():
            redistribute(item, distribution, generator)
    return value


def pad_rows(value: Any) -> Any:
    """`value` with every tensor as a view into a larger buffer: rows further apart than they are long, the first one
    not at the beginning. What lies between them is NaN, or zero for integers. A tensor without two rows stays dense,
    and one without a dimension or without elements as it is."""
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


def _refill(tensor: torch.Tensor, fill: Fill, generator: torch.Generator) -> None:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    own = _without_repeats(tensor)
    own.copy_(fill(own, generator))


def _without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """The part of an expanded tensor that owns memory: writing there once fills all its repeats."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _normal(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(given.shape, generator=generator, device=given.device, dtype=given.dtype)


def _uniform(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(given.shape, generator=generator, device=given.device, dtype=given.dtype) * 2 - 1


def _large(given: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return given * (100.0 if given.dtype == torch.float16 else 1000.0)  # float16 ends at 65504


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
    """Magnitudes as given, signs + - + - along the last dimension: sums cancel."""
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
