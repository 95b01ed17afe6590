"""Describes tensors of a call without their values, and writes the expressions that draw similar ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

COMMON = (
    ({"mask", "causal mask"}, "mask"),
    ({"additive mask", "causal additive mask"}, "additive mask"),
    ({"positions", "integers"}, "integers"),
    ({"uniform", "normal"}, "normal"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """`pattern` names how values are drawn; `order` lists the dimensions from the slowest in memory; `low` to `density`
    are rounded summaries."""

    shape: tuple[int, ...]
    dtype: str
    order: tuple[int, ...]
    pattern: str
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    density: float = 0.0

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * int(getattr(torch, self.dtype).itemsize)

    def __str__(self) -> str:
        layout = "" if self.order == tuple(sorted(self.order)) else f" in memory order {self.order}"
        return f"{self.dtype}{list(self.shape)}{layout}, {self.pattern}, {self.low:g} to {self.high:g}"


def describe(tensor: Tensor) -> TensorFacts:
    tensor = tensor.detach()
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda dim: (-strides[dim], dim)))
    dtype = str(tensor.dtype).removeprefix("torch.")
    facts = TensorFacts(shape=tuple(tensor.shape), dtype=dtype, order=order, pattern="zeros")
    if tensor.numel() == 0 or tensor.is_meta or tensor.is_complex():
        return facts
    fill = _describe_mask if tensor.dtype is torch.bool else _describe_floats
    if not tensor.dtype.is_floating_point and tensor.dtype is not torch.bool:
        fill = _describe_integers
    return fill(tensor, facts)


def _describe_mask(tensor: Tensor, facts: TensorFacts) -> TensorFacts:
    density = round_to(float(tensor.float().mean()), 1)
    pattern = "causal mask" if _is_causal(tensor) else "mask"
    return replace(facts, pattern=pattern, density=density)


def _is_causal(allowed: Tensor) -> bool:
    rows, columns = allowed.shape[-2:] if allowed.dim() > 1 else (0, 0)
    return 1 < rows == columns and bool((allowed == torch.ones_like(allowed).tril()).all())


def _describe_integers(tensor: Tensor, facts: TensorFacts) -> TensorFacts:
    low, high = int(tensor.min()), int(tensor.max())
    steps = torch.arange(tensor.shape[-1] if tensor.dim() else 1, device=tensor.device) + low
    pattern = "positions" if tensor.dim() and bool((tensor == steps).all()) and low != high else "integers"
    return replace(facts, pattern=pattern, low=low if pattern == "positions" else min(low, 0), high=high)


def _describe_floats(tensor: Tensor, facts: TensorFacts) -> TensorFacts:
    values = tensor.float()
    lowest = values <= torch.finfo(tensor.dtype).min
    if bool(lowest.any()) and bool((lowest | (values == 0)).all()):
        pattern = "causal additive mask" if _is_causal(~lowest) else "additive mask"
        return replace(facts, pattern=pattern, density=round_to(float((~lowest).float().mean()), 1))
    values = values[values.isfinite()]
    if not values.numel():
        return facts
    low, high, mean = float(values.min()), float(values.max()), float(values.mean())
    std = float(values.std()) if values.numel() > 1 else 0.0
    pattern = "constant" if low == high else "uniform" if low >= 0 else "normal"
    mean = 0.0 if abs(mean) < 0.1 * std else mean
    return replace(
        facts,
        pattern=pattern,
        low=round_to(low, 2),
        high=round_to(high, 2),
        mean=round_to(mean, 2),
        std=round_to(std, 2),
    )


def merge(one: TensorFacts, other: TensorFacts) -> TensorFacts:
    """Return facts that hold for both; shapes and dtypes are equal. A constant counts only if it is everywhere."""
    first, second = sorted((one, other), key=lambda facts: facts.pattern in ("constant", "zeros"))
    pattern = first.pattern
    if second.pattern not in (pattern, "constant", "zeros"):
        pattern = next((to for some, to in COMMON if {pattern, second.pattern} <= some), pattern)
    low, high = min(one.low, other.low), max(one.high, other.high)
    if pattern == "constant" and low != high:
        pattern = "uniform" if low >= 0 else "normal"
    return replace(first, pattern=pattern, low=low, high=high, std=max(one.std, other.std))


def round_to(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def write_tensor(facts: TensorFacts, sizes: Sequence[str]) -> str:
    """Return an expression; `sizes` are those of the dimensions, as expressions."""
    is_permuted = facts.order != tuple(range(len(facts.order)))
    if is_permuted and facts.pattern in ("normal", "uniform", "zeros", "integers", "mask", "additive mask"):
        inverse = ", ".join(str(facts.order.index(dim)) for dim in range(len(sizes)))
        return f"({_write_values(facts, [sizes[dim] for dim in facts.order])}).permute({inverse})"
    return _write_values(facts, list(sizes))


def _write_values(facts: TensorFacts, sizes: list[str]) -> str:
    shape = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    dtype, named = f"torch.{facts.dtype}", f"dtype=torch.{facts.dtype}"
    lowest = f"torch.finfo({dtype}).min"
    added = f" + {facts.mean}" if facts.mean else ""
    if facts.dtype.startswith("float8"):  # torch cannot draw it
        return f"(torch.randn({shape}){_times(facts.std)}).to({dtype})"
    patterns = {
        "causal mask": f"torch.ones({shape}, {named}).tril()",
        "mask": f"torch.rand({shape}) < {facts.density}",
        "positions": f"(torch.arange({sizes[-1] if sizes else 1}, {named}) + {int(facts.low)}).expand({shape}).clone()",
        "integers": f"torch.randint({int(facts.low)}, {int(facts.high) + 1}, {shape}, {named})",
        "causal additive mask": f'torch.full({shape}, float("-inf"), {named}).triu(1)',
        "additive mask": f"torch.where(torch.rand({shape}) < {facts.density}, 0.0, {lowest}).to({dtype})",
        "constant": f"torch.full({shape}, {facts.low}, {named})",
        "uniform": f"torch.rand({shape}, {named}){_times(facts.high)}",
        "normal": f"torch.randn({shape}, {named}){_times(facts.std)}{added}",
        "zeros": f"torch.zeros({shape}, {named})",
    }
    return patterns[facts.pattern]


def _times(factor: float) -> str:
    return "" if factor in (0.0, 1.0) else f" * {factor}"
