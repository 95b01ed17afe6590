"""Describes tensors of a call without their values, and writes the expressions that draw similar ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from harness.capture.runtime import TensorSlot
from harness.domain import InputContract
from harness.problems.inputs.conformity import find_violation

STRUCTURES = ("causal", "lengths", "nonempty", "arbitrary")  # of masks, the most special ones first


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts(TensorSlot):
    """`pattern` names how values are drawn; a mask has a `structure` and begins with `high`; offsets are sorted, begin
    with 0 and, if they are `full`, end with `high`. `limit` names the size below which indices are, or that offsets do
    not exceed. `order` lists the dimensions from the slowest in memory; `low` to `density` are rounded summaries.
    `learns`: it gets a gradient."""

    shape: tuple[int, ...]
    dtype: str
    order: tuple[int, ...]
    pattern: str
    structure: str = ""
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    density: float = 0.0
    limit: str = ""
    full: bool = False
    learns: bool = False

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * int(getattr(torch, self.dtype).itemsize)


def describe(tensor: Tensor) -> TensorFacts:
    tensor, learns = tensor.detach(), tensor.requires_grad
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda dim: (-strides[dim], dim)))
    dtype = str(tensor.dtype).removeprefix("torch.")
    facts = TensorFacts(shape=tuple(tensor.shape), dtype=dtype, order=order, pattern="zeros", learns=learns)
    if tensor.numel() == 0 or tensor.is_meta:
        return facts
    if tensor.is_complex():
        return replace(facts, pattern="normal", std=round_to(float(tensor.abs().square().mean().sqrt()), 2))
    if tensor.dtype.is_floating_point:
        return _describe_floats(tensor, facts)
    return _describe_mask(tensor, facts) if tensor.dtype is torch.bool else _describe_integers(tensor, facts)


def _describe_mask(allowed: Tensor, facts: TensorFacts) -> TensorFacts:
    contracts = {one: InputContract(kind="mask", structure=one) for one in STRUCTURES}
    structure = next(one for one, contract in contracts.items() if not find_violation(allowed, contract))
    density = round_to(float(allowed.float().mean()), 1)
    first = float(allowed.flatten()[0])
    return replace(facts, pattern="mask", structure=structure, density=density, high=first)


def _describe_integers(tensor: Tensor, facts: TensorFacts) -> TensorFacts:
    low, high = int(tensor.min()), int(tensor.max())
    if (low, high) in ((0, 1), (1, 1)) and tensor.dim() > 1:
        return _describe_mask(tensor.bool(), facts)
    steps = tensor.diff() if tensor.dim() == 1 else tensor
    is_sorted = tensor.dim() == 1 and low != high and bool((steps >= 0).all()) and not bool((steps == 1).all())
    pattern = "offsets" if is_sorted and low == 0 else "sorted" if is_sorted else "integers"
    return replace(facts, pattern=pattern, low=min(low, 0), high=high)


def _describe_floats(tensor: Tensor, facts: TensorFacts) -> TensorFacts:
    values = tensor.float()
    lowest = values <= torch.finfo(tensor.dtype).min
    if bool(lowest.any()) and bool((lowest | (values == 0)).all()):
        found = _describe_mask(~lowest, facts)
        return replace(found, low=-math.inf if bool(values.isneginf().any()) else 0.0)
    values = values[values.isfinite()]
    if not values.numel():
        return facts
    low, high, mean = float(values.min()), float(values.max()), float(values.mean())
    std = float(values.std()) if values.numel() > 1 else 0.0
    return replace(
        facts,
        pattern="constant" if low == high else "uniform" if low >= 0 else "normal",
        low=round_to(low, 2),
        high=round_to(high, 2),
        mean=round_to(0.0 if abs(mean) < 0.1 * std else mean, 2),
        std=round_to(std, 2),
    )


def merge(one: TensorFacts, other: TensorFacts) -> TensorFacts:
    """Return facts that hold for both, with the shape of the first; dtypes are equal. A constant counts only if it is
    everywhere."""
    first, second = sorted((one, other), key=lambda facts: facts.pattern in ("constant", "zeros"))
    pattern = first.pattern
    if second.pattern not in (pattern, "constant", "zeros"):
        is_sorted = {pattern, second.pattern} == {"offsets", "sorted"}
        pattern = "sorted" if is_sorted else "integers" if "int" in one.dtype else "normal"
    low, high = min(one.low, other.low), max(one.high, other.high)
    if pattern == "constant" and low != high:
        pattern = "uniform" if low >= 0 else "normal"
    if pattern == "mask":
        masks = [facts if facts.structure else replace(first, structure="lengths") for facts in (first, second)]
        structures = {facts.structure for facts in masks}
        structure = structures.pop() if len(structures) == 1 else "nonempty"
        structure = "arbitrary" if "arbitrary" in structures else structure
        first = replace(first, structure=structure, density=min(facts.density for facts in masks))
    return replace(
        first, shape=one.shape, order=one.order, pattern=pattern, low=low, high=high, std=max(one.std, other.std),
        learns=one.learns or other.learns,
    )  # fmt: skip


def round_to(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def write_tensor(facts: TensorFacts, sizes: Sequence[str]) -> str:
    """Return an expression; `sizes` are those of the dimensions, as expressions."""
    is_permuted = facts.order != tuple(range(len(facts.order)))
    is_even = facts.structure in ("", "arbitrary") and facts.pattern not in ("sorted", "offsets", "constant")
    if is_permuted and is_even:
        inverse = ", ".join(str(facts.order.index(dim)) for dim in range(len(sizes)))
        return f"({_write_values(facts, [sizes[dim] for dim in facts.order])}).permute({inverse})"
    return _write_values(facts, list(sizes))


def _write_values(facts: TensorFacts, sizes: list[str]) -> str:
    shape, dtype, named = _write_shape(sizes), f"torch.{facts.dtype}", f"dtype=torch.{facts.dtype}"
    if facts.pattern == "mask":
        return _convert_mask(_write_mask(facts, sizes), facts)
    if facts.dtype.startswith("float8"):  # torch cannot draw it
        return f"(torch.randn({shape}){_times(facts.std)}).to({dtype})"
    end = f"{facts.limit}{' + 1' * (facts.pattern == 'offsets')}" if facts.limit else str(int(facts.high) + 1)
    integers = f"torch.randint({int(facts.low)}, {end}, {shape}, {named})"
    added = f" + {facts.mean}" if facts.mean else ""
    last = _fill(f"{sizes[0]} - 1", facts.limit or str(int(facts.high))) if facts.full else ""
    patterns = {
        "sorted": f"{integers}.sort().values",
        "offsets": f"{integers}.sort().values{_fill('0', '0')}{last}",
        "integers": integers,
        "constant": f"torch.full({shape}, {facts.low}, {named})",
        "zeros": f"torch.zeros({shape}, {named})",
        "uniform": f"torch.rand({shape}, {named}){_times(facts.high)}",
        "normal": f"torch.randn({shape}, {named}){_times(facts.std)}{added}",
    }
    return patterns[facts.pattern]


def _fill(at: str, value: str) -> str:
    return f".index_fill(0, torch.tensor([{at}]), {value})"


def _convert_mask(text: str, facts: TensorFacts) -> str:
    """An additive mask has zeros for the elements that count."""
    dtype = f"torch.{facts.dtype}"
    if "float" in dtype:
        lowest = f"torch.finfo({dtype}).min" if math.isfinite(facts.low) else 'float("-inf")'
        return f"torch.where({text}, 0.0, {lowest}).to({dtype})"
    return text if facts.dtype == "bool" else f"({text}).to({dtype})"


def _write_mask(facts: TensorFacts, sizes: list[str]) -> str:
    shape, row = _write_shape(sizes), f"torch.arange({sizes[-1]})" if sizes else ""
    match facts.structure:
        case "causal":
            text = f"torch.ones({shape}, dtype=torch.bool).tril()"
        case "lengths" | "nonempty" if facts.density == 1:
            return f"torch.ones({shape}, dtype=torch.bool)"
        case "lengths":
            text = f"({row} < torch.randint(1, {sizes[-1]} + 1, {_write_shape([*sizes[:-1], '1'])}))"
        case "nonempty":
            return f"(torch.rand({shape}) < {facts.density}) | ({row} == 0)"
        case _:
            return f"torch.rand({shape}) < {facts.density}"
    return text if facts.high else f"~{text}"


def _write_shape(sizes: Sequence[str]) -> str:
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def _times(factor: float) -> str:
    return "" if factor in (0.0, 1.0) else f" * {factor}"
