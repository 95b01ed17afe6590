import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from harness.domain import InputContract
from harness.problems.inputs.kind import DerivedKind, Inputs, is_smooth
from harness.problems.inputs.tensors import MASKED, choose_part, draw, draw_share, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import INTEGERS
from harness.tensors.values import list_tensors

# Logarithms of the peak's weight / that of all others together. Sums that hold both lose digits of a small share, which
# does not matter beside rows with larger shares. Values beside a zero lose none.
LEAST, MOST = -2.2, 4.6
MOST_AMONG_OTHERS = {2: 4.6, 4: 9.2, 8: 9.2}  # by bytes of a value
# A loss of 16 bits may be the difference of a logit and the logarithm of the sum, which has a rounding of its own: the
# others add at least a quarter to the logarithm, and less where the peak is near zero.
MOST_IN_16_BITS, MOST_NEAR_ZERO = 1.2, 3.4
MOST_BESIDE_ZERO = {2: 7.5, 4: 12.0, 8: 12.0}
# Among others: each term is at least four roundings of the peak, so that a sum in order keeps most of it; of few terms
# one rounding. In 16 bits products of such terms still have some digits.
HIGHEST, HIGHEST_OF_FEW, FEW_TERMS, HIGHEST_IN_16_BITS = 14.5, 15.9, 1200, 12.5
NEARLY_EQUAL, SPREAD = 0.5, 8.0  # or less is the distance of the others from zero
# Or so little that roundings of their exponentials to a narrower format err in one direction; those of float32 sums of
# as many terms still do not, if the others have half of the weight or more.
ALIKE, MOST_ALIKE, ALIKE_ONE_IN = 2.0**-11, 4096, 3
NEAR_ZERO = 0.75  # further than `NEARLY_EQUAL`: of terms added to 1 the logarithm has their roundings
USUALLY = 4  # in all but one of so many calls
OVERFLOWING = 128  # and a little more, or all below -128: products of which a program must subtract the largest
EQUAL, SPREAD_OUT, ANY = range(3)  # forms of rows, by variants; of vectors the second one overflows


class Peaked(DerivedKind):
    """One element of a row has most of its softmax's weight, and the nearly equal others together have the rest. Of
    vectors that are multiplied with each other, one of the second argument has by far the largest product with all of
    the first; in further arguments the vector at its place is zero, so that outputs are what all others contribute.
    """

    name = "peaked"
    whole_one_in = 2

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return traits.use.exponentiates and is_smooth(traits) and bool(self.list_allowed(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return False  # what one rounding changes is part of the tolerance

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_scale

    def change(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        tensors = [one for one, _ in self.list_allowed(traits, inputs) if one.dim() > 1 and has_many_digits(one)]
        variant = self.find_variant(generator.initial_seed())
        form, is_whole = variant // self.whole_one_in, variant % self.whole_one_in == 0
        is_usual = is_whole or form != ANY
        vectors = _find_vectors(tensors) if is_usual else []
        if vectors:
            _raise_one_product(vectors, generator, overflows=form == SPREAD_OUT, is_whole=is_whole)
            return inputs
        indices = [one for one in list_tensors(inputs) if one.dtype in INTEGERS] if is_usual else []
        for tensor in tensors:
            weights = [one for one in traits.weights if is_usual and one.size(-1) == tensor.size(-1)]
            distance = SPREAD if form == SPREAD_OUT and not weights else NEARLY_EQUAL
            may_be_alike = form != SPREAD_OUT and not weights and tensor.element_size() > 2
            if may_be_alike and max(tensor.shape) <= MOST_ALIKE and not draw(ALIKE_ONE_IN, generator):
                distance = ALIKE
            is_narrow = traits.returns_16_bits and tensor.element_size() == 2
            _raise_elements(
                tensor, indices, weights, generator, is_whole=is_whole, is_narrow=is_narrow, distance=distance
            )
        return inputs


def _find_vectors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return queries, keys and values: after the first tensor of three or more dimensions, the ones with as many. Of
    several with as long vectors, as where some are appended to others, the longest are the keys.
    """
    for place, first in enumerate(tensors):
        others = [one for one in tensors[place + 1 :] if one.dim() == first.dim() > 2]
        if others and others[0].size(-1) == first.size(-1):
            keys = max((one for one in others if one.size(-1) == first.size(-1)), key=Tensor.numel)
            return [first, keys, *(one for one in others if one is not keys)]
    return []


def _raise_one_product(vectors: Sequence[Tensor], generator: Generator, *, overflows: bool, is_whole: bool) -> None:
    """The products are divided by the square root of the number of their terms, as in attention. Two that overflow are
    a stride apart, mostly, and at times those of some vectors only; as a whole, all exponentials become zero.
    """
    queries, keys, *values = vectors
    appended = [one for one in values if one.size(-1) == keys.size(-1) and one.numel() < keys.numel()]
    if not all(_make_nearly_equal(one, 1) for one in (queries, keys, *appended)):
        return
    axis = max(range(keys.dim() - 1), key=keys.size)
    size, terms = keys.size(axis), keys.size(-1)
    place, term = _draw_early(size, generator), draw(terms, generator)
    shape = [*keys.shape[:axis], *[1] * (keys.dim() - 2 - axis)]
    most = MOST_BESIDE_ZERO[keys.element_size()]
    heights = _draw_heights(shape, size, generator, most, most)
    heights = heights.clamp_(max=HIGHEST_IN_16_BITS) if keys.element_size() == 2 else heights
    first = queries.select(-1, term)
    first.fill_(1)
    raised = keys.select(-1, term)
    raised.zero_()
    if overflows and is_whole and keys.element_size() > 2:
        raised.fill_(-round(OVERFLOWING * math.sqrt(terms)))
        return
    if overflows:
        if draw(2, generator):
            first.mul_(choose_part(first, generator))
        stride = 2 ** draw(size.bit_length(), generator)
        other = (place + stride * draw(size, generator)) % size
        for more, at in ((0, place), (1 + draw(3, generator), other)):
            raised.select(axis, at).fill_(round((OVERFLOWING + more) * math.sqrt(terms)))
        return
    raised.select(axis, place).copy_((heights * math.sqrt(terms)).expand_as(raised.select(axis, place)))
    for one in values:
        if one.size(axis) == size:
            one.select(axis, place).zero_()


def _raise_elements(
    tensor: Tensor,
    indices: Sequence[Tensor],
    weights: Sequence[Tensor],
    generator: Generator,
    *,
    is_whole: bool,
    is_narrow: bool,
    distance: float,
) -> None:
    """Of rows along the last dimension or, at times, another one: at the places that an index names, if there is one.
    Before a product with weights, their row at this place is added, so that the element of the product is raised.
    """
    is_last = bool(weights) or tensor.dim() < 3 or bool(draw(2, generator))
    dim = tensor.dim() - 1 if is_last else 1 + draw(tensor.dim() - 1, generator)
    one = tensor.narrow(dim, 0, 1)
    size = weights[0].size(0) if weights else tensor.size(dim)
    chosen = torch.ones_like(one, dtype=torch.bool) if is_whole else choose_part(one, generator).expand_as(one)
    if not _make_nearly_equal(tensor, chosen, distance):
        return
    named = next((index for index in indices if index.shape == one.squeeze(dim).shape), None)
    if named is None:
        places = torch.full(one.shape, _draw_early(size, generator), device=tensor.device)
    else:
        places = named.long().clamp(0, size - 1).unsqueeze(dim)
    if distance > NEARLY_EQUAL:  # the height is above zero
        tensor.scatter_(dim, places, torch.where(chosen, 0.0, tensor.gather(dim, places)))
    lowers = not weights and bool(is_narrow or draw(2, generator))
    most, most_of_all = MOST_AMONG_OTHERS[tensor.element_size()], MOST
    if distance == ALIKE:
        most = most_of_all = 0.0
    elif is_narrow:
        most = most_of_all = MOST_NEAR_ZERO if lowers else MOST_IN_16_BITS
    heights = _draw_heights(one.shape, size, generator, most, most_of_all)
    heights = torch.where(chosen, heights.clamp_(distance, HIGHEST if size > FEW_TERMS else HIGHEST_OF_FEW), 0)
    if weights:
        rows = weights[0][places.squeeze(dim)].to(tensor.dtype)
        squares = rows.float().square().sum(-1, keepdim=True)
        tensor.addcmul_(rows, torch.where(squares > 0, heights / squares, 0).to(tensor.dtype))
    else:
        tensor.scatter_add_(dim, places, heights.to(tensor.dtype))
        if lowers:  # the others are lower, so that the logarithm of their sum with the peak is small
            tensor.sub_(torch.where(chosen, heights - NEAR_ZERO, 0).to(tensor.dtype))


def _make_nearly_equal(tensor: Tensor, chosen: Tensor | int, distance: float = NEARLY_EQUAL) -> bool:
    """Multiply chosen rows by a power of two. Return False for values that a mask fills in."""
    most = max(map(abs, map(float, tensor.aminmax())))
    if not 0 < most < -MASKED:
        return False
    factor = 2.0 ** math.floor(math.log2(distance / most))
    tensor.mul_(torch.where(chosen, factor, 1.0).to(tensor.dtype) if isinstance(chosen, Tensor) else factor)
    return True


def _draw_heights(shape: Sequence[int], size: int, generator: Generator, most: float, most_of_all: float) -> Tensor:
    """Return distances between peaks and `size` others. In half of the calls all have the largest one."""
    shares = torch.rand(shape, generator=generator, device=generator.device)
    heights = LEAST + (most - LEAST) * shares
    return math.log(size) + (heights.fill_(most_of_all) if draw(2, generator) else heights)


def _draw_early(size: int, generator: Generator) -> int:
    """Draw a place that is mostly near the first, before which little was seen."""
    return min(int(size ** draw_share(generator)) - 1 if draw(USUALLY, generator) else draw(size, generator), size - 1)
