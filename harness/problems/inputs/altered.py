"""Changes arguments that are equal under two seeds (masks, lengths, positions, factors).

Integers stay between the smallest and largest given one, so that indices stay valid; sorted integers stay sorted, as
offsets must.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import torch
from torch import Tensor

from harness.problems.inputs.kind import DerivedKind, Inputs
from harness.problems.inputs.tensors import choose_part, draw_share, is_dense, split_parts, without_repeats
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import INTEGERS, OperatorUse
from harness.tensors.slices import has_same_bits
from harness.tensors.trees import list_leaves, map_leaves

ALTERED_SHARE, ALTERED_IN_PART = 0.125, 0.5  # of the elements of masks: of all, or of a chosen part
MASKED = -1e4  # or less is added to scores that do not count
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Their results are undefined if integers that were unique no longer are.
SCATTERING = {
    "index_copy", "index_put", "_index_put_impl", "index_fill", "scatter", "masked_scatter", "put", "slice_scatter",
}  # fmt: skip


class Altered(DerivedKind):
    name = "altered"
    is_rarely_seen = True
    is_of_draws = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return bool(traits.constants) and may_alter(traits.use)

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        places = count()
        altered: Inputs = map_leaves(
            inputs, lambda leaf: _alter(leaf, generator) if next(places) in traits.constants else leaf
        )
        return altered


def may_alter(use: OperatorUse) -> bool:
    """Return False if other values may be invalid as indices or probabilities."""
    return not use.restricts_values and not use.converts_to_integers


def find_constants(first: object, second: object, use: OperatorUse) -> tuple[int, ...]:
    with_integers = not use.has(SCATTERING)
    pairs = enumerate(zip(list_leaves(first), list_leaves(second), strict=True))
    return tuple(place for place, (one, other) in pairs if _are_equal(one, other, with_integers=with_integers))


def _are_equal(first: object, second: object, *, with_integers: bool) -> bool:
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return isinstance(first, float) and first == second
    first, second = without_repeats(first), without_repeats(second)
    if not _can_be_altered(first, with_integers=with_integers) or first.shape != second.shape:
        return False
    return first.dtype == second.dtype and has_same_bits(first, second)


def _can_be_altered(tensor: Tensor, *, with_integers: bool) -> bool:
    if tensor.is_meta or not is_dense(tensor) or not tensor.numel():
        return False
    if tensor.dtype in FLOATS or tensor.dtype is torch.bool:
        return True
    return tensor.dtype in INTEGERS and (with_integers or tensor.numel() == 1)


def _alter(leaf: Tensor | float, generator: torch.Generator) -> Tensor | float:
    if isinstance(leaf, float):
        return leaf * (0.5 + draw_share(generator))
    return _alter_tensor(without_repeats(leaf.detach()), generator).expand_as(leaf)


def _alter_tensor(given: Tensor, generator: torch.Generator) -> Tensor:
    altered = given.clone()
    if given.dtype in INTEGERS:
        _alter_integers(altered, generator)
        return altered
    values = _find_two_values(given)
    if values is not None:
        return flip_marks(given, values, generator)
    keeps_most = given.dim() > 0 and draw_share(generator) < 0.5
    _alter_floats(altered, generator)
    return _keep_most(altered, given, generator, only_slices=False) if keeps_most else altered


def flip_marks(given: Tensor, values: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Exchange the only two `values`, low and high, of random elements. Half of the calls change secret slices."""
    altered, keeps_most = given.clone(), given.dim() > 0 and draw_share(generator) < 0.5
    for part in split_parts(altered):
        draws = torch.rand(part.shape, generator=generator, device=part.device)
        low, high = (part.new_tensor(value) for value in values)
        swapped = torch.where(part == low, high, low)
        part.copy_(torch.where(draws < (ALTERED_IN_PART if keeps_most else ALTERED_SHARE), swapped, part))
    if keeps_most:
        altered = _keep_most(altered, given, generator, only_slices=True)
    return _keep_one_in_each_row(altered, given) if values[0] <= MASKED else altered


def _find_two_values(tensor: Tensor) -> tuple[float, float] | None:
    """Return the two values of a mask, or None. Triangles of ones are excluded, since they may be factors."""
    values = find_marks(tensor)
    return values if values is not None and (tensor.dtype is torch.bool or values[0] <= MASKED) else None


def find_marks(tensor: Tensor) -> tuple[float, float] | None:
    """Return the lowest and the highest value if there are no others."""
    if tensor.dtype is torch.bool:
        return False, True
    low, high = tensor.min(), tensor.max()
    has_others = not all(bool(((part == low) | (part == high)).all()) for part in split_parts(tensor))
    return None if low == high or has_others else (float(low), float(high))


def _keep_one_in_each_row(altered: Tensor, given: Tensor) -> Tensor:
    """A softmax of minus infinities alone is NaN."""
    return torch.where((altered == altered.min()).all(-1, keepdim=True), given, altered)


def _keep_most(altered: Tensor, given: Tensor, generator: torch.Generator, *, only_slices: bool) -> Tensor:
    """Alter only secret elements or slices, which a sample mostly misses. Alter only slices of masks, since outputs may
    not show single elements.
    """
    mask = choose_part(given, generator, only_slices=only_slices).expand_as(given)
    for part, ours, chosen in zip(*map(split_parts, (altered, given, mask)), strict=True):
        part.copy_(torch.where(chosen, part, ours))
    return altered


def _alter_floats(tensor: Tensor, generator: torch.Generator) -> None:
    is_zero = not bool(tensor.count_nonzero())
    for part in split_parts(tensor):
        draws = torch.rand(part.shape, generator=generator, device=part.device)
        part.copy_(draws - 0.5 if is_zero else part * (0.5 + draws).to(part.dtype))


def _alter_integers(tensor: Tensor, generator: torch.Generator) -> None:
    flat = tensor.flatten()
    low, high = int(flat.min()), int(flat.max())
    if low == high:  # lengths, counts, masks
        least = min(1, high - 1)
        draws = torch.randint(least, high + 1, flat.shape, generator=generator, device=flat.device)
        keeps = torch.rand(flat.shape, generator=generator, device=flat.device) < (0.5 if flat.numel() > 1 else 0.0)
        changed = torch.where(keeps, flat, draws.to(flat.dtype)) if high > 0 else flat
    elif bool((flat[1:] >= flat[:-1]).all()):  # positions, offsets
        changed = torch.randint(low, high + 1, flat.shape, generator=generator, device=flat.device).to(flat.dtype)
        changed[0], changed[-1] = low, high
        changed = changed.sort().values
    else:
        changed = flat[torch.randperm(flat.numel(), generator=generator, device=flat.device)]
    tensor.copy_(changed.view(tensor.shape))
