import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.kind import DerivedKind, InputKind, Inputs, is_smooth, may_be_rounded
from harness.problems.inputs.tensors import (
    PATTERNS,
    choose_part,
    count_part,
    draw,
    find_inexact,
    has_negative,
    split_for_device,
    split_parts,
)
from harness.problems.inputs.traits import InputTraits

# Each of 256 threads that form a longer sum adds so many of its terms that float32 sums lose as much as the roundings
# to narrower formats that these values reveal.
MOST_TERMS = 1 << 17
MOST_TERMS_IN_PART = 1 << 12  # of longer sums, where only some terms are changed, one thread's errors are too unequal


# Digits of equal values that stay random, so that the roundings of a float32 sum of as many terms do, too: at least
# these, so that few values are equal, and at most as many as a narrower format loses.
PLACES, LEAST_RANDOM, MOST_RANDOM = 23, 9, 14  # the first of float32


class Biased(DerivedKind):
    """Changes each value by less than 1 % (16-bit formats: 7 %), so that rounding it to a narrower format errs in one
    direction. In half of the calls the values of a tensor have the same leading digits instead, and at times one size,
    so that what is computed of each, such as squares, errs in one direction.
    """

    name = "biased"
    changes_gradients = True
    variants, whole_one_in = 4, 2

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return is_smooth(traits) and traits.use.most_terms <= MOST_TERMS and bool(self.list_allowed(traits, inputs))

    def take_variant(self, seed: int) -> InputKind:
        return LOW_DIGITS if self.find_variant(seed) < self.whole_one_in else self

    def scales_values(self, traits: InputTraits) -> bool:
        return False

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_digits and not contract.distinct

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        """Equal values stay equal in tensors with structure: these change as a whole."""
        seed, random = generator.initial_seed(), _count_random(traits)
        is_alike = self.find_variant(seed) >= self.whole_one_in and random <= MOST_RANDOM and may_be_rounded(traits)
        is_all = self.changes_all(seed) or traits.use.most_terms > MOST_TERMS_IN_PART
        for tensor, contract in self.list_allowed(traits, inputs):
            if is_alike and contract.has_free_sizes and not contract.is_bounded:
                _write_digits(tensor, random, generator)
                continue
            is_whole = is_all or not contract.has_free_sizes or tensor.dim() < 2
            change_some(tensor, _bias, None if is_whole else choose_part(tensor, generator))
        return inputs


class _LowDigits(Biased):
    """Only these change: roundings of nearly equal terms would add up."""

    has_usual_sizes = biases_sums = True


LOW_DIGITS = _LowDigits()


def _count_random(traits: InputTraits) -> int:
    return max(LEAST_RANDOM, math.ceil(math.log2(max(traits.use.terms.added, 1))))


def _write_digits(tensor: Tensor, random: int, generator: torch.Generator) -> None:
    """Write leading digits; in half of the calls of values of both signs, the size, too."""
    pattern, info = PATTERNS[tensor.dtype], torch.finfo(tensor.dtype)
    places = round(-math.log2(info.eps))
    kept = max(places - (PLACES - random), 0)  # as many as in float32 are rewritten
    mask = (1 << places) - (1 << kept)
    digits = draw(1 << places, generator) & mask
    if draw(2, generator) and has_negative(tensor):
        powers = (1 << (info.bits - 1)) - (1 << places)
        usual = torch.full((), 2.0 ** _find_usual_power(tensor), dtype=tensor.dtype)
        mask, digits = mask | powers, digits | (int(usual.view(pattern.integer)) & powers)
    for part in split_for_device(tensor):
        bits = part.view(pattern.integer)
        bits.copy_(torch.where(find_inexact(part), (bits & ~mask) | digits, bits))


def _find_usual_power(tensor: Tensor) -> int:
    mean = max((float(part.abs().float().mean()) for part in split_for_device(tensor)), default=0.0)
    return math.floor(math.log2(mean)) if 0 < mean < math.inf else 0


def change_some(tensor: Tensor, change: Callable[[Tensor], object], chosen: Tensor | None) -> None:
    if chosen is None:
        change(tensor)
        return
    elements = count_part(tensor)
    masks = split_parts(chosen.expand_as(tensor), elements)
    for part, mask in zip(split_parts(tensor, elements), masks, strict=True):
        changed = part.clone()
        change(changed)
        part.copy_(torch.where(mask, changed, part))


def _bias(tensor: Tensor) -> None:
    pattern = PATTERNS[tensor.dtype]
    for part in split_for_device(tensor):
        bits = part.view(pattern.integer)
        shifted = (bits & pattern.digits) >> pattern.right << pattern.left
        biased = (bits & ~pattern.digits) | pattern.fixed | shifted
        bits.copy_(torch.where(find_inexact(part), biased, bits))
