"""Infers contracts of inputs from two draws and from the operators that use them: what is not stated is general."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.conformity import find_structure, is_sorted
from harness.problems.inputs.tensors import (
    FLOATS,
    MASKED,
    find_marks,
    has_few_digits,
    has_own_elements,
    has_zeros,
    holds_whole_numbers,
    without_repeats,
)
from harness.problems.operators import IN_A_SORTED_ROW, INTEGERS, OperatorUse
from harness.tensors.values import has_same_bits

# Their results are undefined if integers that were unique no longer are.
SCATTERING = {
    "index_copy", "index_put", "_index_put_impl", "index_fill", "scatter", "masked_scatter", "put", "slice_scatter",
}  # fmt: skip


def complete_contract(
    contract: InputContract,
    one: Any,
    other: Any,
    use: OperatorUse,
    *,
    drawn_from: tuple[float, float] | None,
    place: int | None = None,
) -> InputContract:
    """`one` and `other` are values under two seeds; their elements are `drawn_from` a range independently, or None.
    `place` is the tensor's among the inputs (None: unknown). A stated contract stays; anything else is inferred.
    """
    is_constant = _are_equal(one, other)
    is_converted = use.converts_to_integers if place is None else place in use.converted
    has_pattern = _has_pattern(one, is_constant=is_constant)
    seen = replace(contract, is_constant=is_constant, has_pattern=has_pattern, is_converted=is_converted)
    if contract.is_stated:
        return seen
    is_tensor = isinstance(one, Tensor)
    is_ordered = use.orders_values if place is None else place in use.ordered
    seen = replace(seen, is_related=is_tensor and drawn_from is None and not is_ordered)
    if not isinstance(one, Tensor):
        return seen if isinstance(one, float) and is_constant else replace(seen, kind="fixed")
    one = without_repeats(one)
    if one.is_meta or not has_own_elements(one) or not one.numel():
        return replace(seen, kind="as_drawn")
    inferred = _limit(_infer(one, seen, use), (one, other), drawn_from)
    is_restricted = use.restricts_values if place is None else place in use.restricted
    if not is_converted and not is_restricted:
        return inferred
    if inferred.kind != "real":  # other values may be invalid as indices or probabilities
        return replace(inferred, kind="as_drawn")
    low = 0 if is_restricted and not inferred.is_implied else inferred.low
    return replace(inferred, has_pattern=False, low=low)


def _limit(inferred: InputContract, draws: Sequence[Tensor], drawn_from: tuple[float, float] | None) -> InputContract:
    """Add the range of the functions that made the values, if these are in it."""
    low, high = drawn_from or (-math.inf, math.inf)
    is_limited = inferred.kind == "real" and (low > -math.inf or high < math.inf)
    if not is_limited or not all(low <= float(bound) <= high for one in draws for bound in one.aminmax()):
        return inferred
    return replace(inferred, low=_make_bound(low), high=_make_bound(high), is_implied=True)


def _make_bound(value: float) -> float | None:
    return None if math.isinf(value) else int(value) if value.is_integer() else value


def _has_pattern(value: Any, *, is_constant: bool) -> bool:
    if not isinstance(value, Tensor):
        return isinstance(value, float) and is_constant
    tensor = without_repeats(value)
    if tensor.dtype not in FLOATS or tensor.is_meta or not has_own_elements(tensor) or not tensor.numel():
        return False
    return is_constant or (tensor.numel() > 1 and (has_few_digits(tensor) or has_zeros(tensor)))


def _are_equal(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return not isinstance(one, Tensor) and not isinstance(other, Tensor) and bool(one == other)
    one, other = without_repeats(one), without_repeats(other)
    is_comparable = one.shape == other.shape and one.dtype == other.dtype and not one.is_meta
    return is_comparable and one.layout is torch.strided and has_same_bits(one, other)


def _infer(tensor: Tensor, seen: InputContract, use: OperatorUse) -> InputContract:
    if tensor.dtype in INTEGERS:
        return _infer_integers(tensor, seen, use)
    if tensor.dtype not in (*FLOATS, torch.bool):
        return replace(seen, kind="as_drawn")
    if tensor.dtype is torch.bool or _is_mask(tensor, seen):
        depends_on_order = use.orders_values and not seen.is_constant  # else more values may be equal
        return replace(seen, kind="as_drawn" if depends_on_order else "mask")
    if use.has(IN_A_SORTED_ROW) and is_sorted(tensor):
        return replace(seen, kind="sorted")
    if seen.is_related and not seen.is_constant and not holds_whole_numbers(tensor):
        return find_structure(tensor, seen)
    return seen


def _is_mask(tensor: Tensor, seen: InputContract) -> bool:
    """Constant zeros and ones may be factors."""
    marks = find_marks(tensor)
    return (
        marks is not None
        and all(one == -math.inf or one.is_integer() for one in marks)
        and (not seen.is_constant or marks[0] <= MASKED)
    )


def _infer_integers(tensor: Tensor, seen: InputContract, use: OperatorUse) -> InputContract:
    """Keep what other integers may violate: order, uniqueness, and the range of the given ones."""
    low, high = int(tensor.min()), int(tensor.max())
    if use.has(SCATTERING) and tensor.numel() > 1:
        return replace(seen, kind="as_drawn")
    structured = find_structure(tensor, seen)
    if structured.kind != "as_drawn":
        return structured
    return replace(seen, kind="integer", low=low, high=high)
