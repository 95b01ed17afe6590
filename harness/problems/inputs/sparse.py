import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.conformity import is_within
from harness.problems.inputs.kind import DerivedKind, InputKind, Inputs, is_smooth
from harness.problems.inputs.tensors import (
    FEW,
    PATTERNS,
    copy_apart,
    draw,
    draw_share,
    has_many_digits,
    is_dense,
    split_for_device,
)
from harness.problems.inputs.traits import InputTraits, list_alike
from harness.problems.inputs.varied import PIECEWISE
from harness.problems.operators import VARIANCES

# Of the largest magnitude: far above the constants that programs add to denominators, and so small that all elements
# together are less than those that keep their values, if possible.
NEARLY_ZERO = (1e-6, 1e-4)
LEAST_ELEMENTS = 256
LARGEST_SHARE = 16  # at most one in so many elements is scattered, or in the stretch
SMALLEST_POWER, SMALLEST_OF_VARIANCES = 8, 5  # with weights, so many times half as many or fewer
NEARLY, FILLED, TOGETHER, ALIKE, RELATED, FEW_ZEROS = range(6)  # variants; the others have one tensor of zeros
JOINED = 4  # all but one of so many tensors of one shape
REACHED = 2.0  # divided by the number of elements: the least one of those that zero belongs to, or less
FILL = 0.5  # of whose repetitions sums and squares are exact
NOISE = 1 / 16  # so that values at the same places do not cancel
EQUALITY = {"eq", "ne"}  # as in the gradients of sinc
ROOTS = {"sqrt", "rsqrt", "pow", "norm", "linalg_vector_norm", "hypot", "_cdist_forward", "amax", "amin", "max", "min"}
FEWEST_ONE_IN = 3  # calls in which hardly any element keeps its value, so that even large samples are equal


class Sparse(DerivedKind):
    """Changes one tensor, since a product of several that are nearly zero has nothing but roundings. The other elements
    are nearly zero, zero or `FILL`, so that parts of the inputs are equal wherever a program samples them. With weights
    all are zero, and so few keep their values that most rows have some: legitimate programs differ in variances of
    nearly constant values. At times tensors of one shape keep values at the same places, or all tensors repeat few of
    their slices, or one is nearly a shifted or reversed copy of another.
    """

    name = "sparse"
    by_peak = makes_terms_alike = True
    variants = whole_one_in = 8
    is_timed = False  # zeros take less power, so that some kernels are faster; in replays only the outputs count

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        is_usable = is_smooth(traits) and (not traits.problem.backward or _has_usual_gradients(traits))
        return is_usable and bool(self.list_allowed(traits, inputs))

    def take_variant(self, seed: int) -> InputKind:
        return self if self.find_variant(seed) in (NEARLY, FILLED, ALIKE) else ZEROS

    def allows(self, contract: InputContract) -> bool:
        return contract.is_free and any(is_within(value, contract) for value in (0.0, FILL))

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        tensors, variant = self.list_allowed(traits, inputs), self.find_variant(generator.initial_seed())
        value = FILL if variant == FILLED and not traits.has_weighted_variances else 0.0
        usable = [(tensor, contract) for tensor, contract in tensors if is_within(value, contract)]
        shares = [
            (tensor, share)
            for tensor, contract in usable
            if (share := _find_share(tensor, value, is_legal=contract.is_stated)) is not None
        ]
        alike = list_alike(usable) if variant == RELATED else []
        if alike:
            one, other, _ = alike[draw(len(alike), generator)]
            noise = torch.rand(one.shape, generator=generator, device=one.device).mul_(NOISE).add_(1 - NOISE)
            other.copy_(copy_apart(one, generator) * noise.to(one.dtype))
        elif variant == ALIKE and not traits.use.has(VARIANCES):
            for tensor, _ in tensors:
                if has_many_digits(tensor):
                    _repeat_slices(tensor, generator)
        elif shares:
            tensor, share = shares[draw(len(shares), generator)]
            same = [one for one, _ in shares if one.shape == tensor.shape and draw(JOINED, generator)]
            chosen = same if variant == TOGETHER and same else [tensor]
            few, most = tensor.numel() // LARGEST_SHARE, SMALLEST_POWER
            if traits.has_weighted_variances:
                most = 0 if traits.has_varied_products else SMALLEST_OF_VARIANCES  # biases are equal terms
            elif not draw(FEWEST_ONE_IN, generator):
                few, most = FEW, FEW.bit_length() - 1
            elif not traits.has_state:
                few = min(few, PATTERNS[tensor.dtype].few)
            few = max(few >> draw(most + 1, generator), 1)
            if variant == FEW_ZEROS:
                places = torch.randint(tensor.numel(), (few,), generator=generator, device=tensor.device)
                tensor.as_strided((tensor.numel(),), (1,))[places] = 0.0
            else:
                share = share if variant == NEARLY and not traits.has_state else 0.0
                _fill_most(chosen, few, share, value, generator)
        return inputs


class _Zeros(Sparse):
    makes_terms_alike = False


ZEROS = _Zeros()


def _has_usual_gradients(traits: InputTraits) -> bool:
    """True if legitimate gradients agree where values are zero or equal."""
    is_plain = not traits.use.terms.multiplied and not traits.use.exponentiates
    return is_plain and not traits.use.has((PIECEWISE - EQUALITY) | VARIANCES | ROOTS)


def _fill_most(tensors: Sequence[Tensor], few: int, share: float, value: float, generator: torch.Generator) -> None:
    count, device = tensors[0].numel(), tensors[0].device
    places = torch.randint(count, (few,), generator=generator, device=device)
    length = 1 + draw(few, generator)
    first = draw(count - length + 1, generator)
    for tensor in tensors:
        flat = tensor.as_strided((count,), (1,))
        scattered, stretch = flat[places], flat[first : first + length].clone()
        flat.mul_(share).add_(value)
        flat[first : first + length] = stretch
        flat[places] = scattered


def _repeat_slices(tensor: Tensor, generator: torch.Generator) -> None:
    """Of most slices along one dimension."""
    dim = draw(tensor.dim(), generator)
    size = tensor.size(dim)
    few = int(FEW ** draw_share(generator))
    sources = torch.randint(size, (few,), generator=generator, device=tensor.device)
    order = sources[torch.randint(few, (size,), generator=generator, device=tensor.device)]
    kept = draw(size, generator)
    order[kept] = kept
    tensor.copy_(tensor.index_select(dim, order))


def _find_share(tensor: Tensor, value: float, *, is_legal: bool) -> float | None:
    """Return what is left of the other elements; None if most have few digits (sums of one repeated value would have
    systematic errors), or if nothing shows that `value` is legal: it is not among the given ones, or nearly.
    """
    if not is_dense(tensor) or tensor.numel() < LEAST_ELEMENTS or not has_many_digits(tensor):
        return None
    low, high = tensor.new_full((), math.inf), tensor.new_zeros(())
    for part in split_for_device(tensor):
        sizes = part.abs()
        torch.minimum(low, sizes.min(), out=low)
        torch.maximum(high, sizes.max(), out=high)
    least, most = float(low), float(high)
    lowest, highest = NEARLY_ZERO
    share = max(lowest, min(highest, PATTERNS[tensor.dtype].few / (4 * tensor.numel())))
    is_reached = is_legal or least <= max(value, share * most, REACHED / tensor.numel() * most)
    return share if is_reached and math.isfinite(most) else None
