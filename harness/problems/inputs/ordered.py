import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.kind import DerivedKind, InputKind, Inputs
from harness.problems.inputs.tensors import (
    FEW,
    OF_FIRST,
    PATTERNS,
    choose_part,
    count_part,
    draw,
    draw_long,
    draw_share,
    exchange_few,
    has_many_digits,
    has_own_elements,
    split_for_device,
)
from harness.problems.inputs.traits import InputTraits, is_elementwise
from harness.problems.operators import COMPARISONS, ORDERING, VARIANCES
from harness.tensors.outputs import unravel

CLOSER = 2.0**-8  # times the distances of close values beside one far from them, without a gap
APART = 48.0  # whose exponential float32 represents, with either sign
LONGEST_APART = 1 << 16
STRETCHED_BY = 3.0  # times the distance, added to values above the least of the stretched ones
# Between neighbours, relative to their size: where inputs themselves are ordered, more than the error that is allowed
# for copied values; elsewhere so much that float32 still tells their functions apart. Half precision tells neither.
NEAREST, NEAR = 2.0**-19, 2.0**-15
SMALLER = 2.0**-12  # for copied values, whose keys may be rounded to a multiple of a constant
LARGEST = (8.0, 1.0, 0.125)  # of others: float32 rounds exponentials of larger ones more
CLOSEST, LARGER = 2.0**-18, (8.0, 1.0)  # of others, if no product and no function that loses digits is computed
MOST_BINADES = 2  # that neighbours fill
GAP = 8  # binades between two parts of them
TIED, CLUSTERED = 6, 7  # variants that keep values within bounds
NEARER = (3, 6)  # least and most powers of two by which distances within a cluster become smaller
LONGEST_SORTED = 1 << 10  # since sums in order of longer ones lose digits
LONGEST_RUN, FEWEST_VALUES = 64, 8  # equal neighbours; different values of a row
STRIDED, RUNS, PERIODS = 1, 2, 3  # variants of another order; the other one: sorted, or with a peak


class Ordered(DerivedKind):
    """Gives values the opposite order, enlarges distances above a random element, sets few values of each row apart, or
    makes all different values of a row neighbours; also sorts half of the rows. Equal values stay equal, and different
    ones different, unless they are a few roundings apart; but in one variant rows of ordered inputs repeat few of their
    values. In another vectors lie in few clusters.
    """

    name = "ordered"
    variants, whole_one_in = 8, 3
    is_combined = False

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return traits.orders_values and bool(self.list_allowed(traits, inputs))

    def take_variant(self, seed: int) -> InputKind:
        return TIES if self.find_variant(seed) == TIED else self

    def allows(self, contract: InputContract) -> bool:
        """Values between two bounds can be reflected. Those that the reference searches in must stay sorted."""
        is_other = not contract.is_stated and contract.kind != "sorted"
        is_movable = not contract.is_related and (contract.kind == "real" or is_other)
        return is_movable and (contract.low is None) == (contract.high is None)

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        if self.find_variant(generator.initial_seed()) == CLUSTERED:
            tensors = [one for one, contract in self.list_allowed(traits, inputs) if one.dim() > 1]
            for tensor in tensors:
                if len(tensors) == 1 or draw(len(tensors), generator):
                    _cluster(tensor, generator)
            return inputs
        names = ORDERING if traits.use.orders_values else COMPARISONS
        dims = sorted(traits.use.list_dims(ORDERING), key=str) or [-1]
        dim, is_copied = dims[draw(len(dims), generator)], traits.use.has(names, on_input=True)
        is_exact = not traits.use.terms.multiplied and not traits.use.terms.functions
        for tensor, contract in self.list_allowed(traits, inputs):
            if has_many_digits(tensor):
                rows = _view_rows(tensor, -1 if contract.distinct else dim)  # other rows may have equal values
                some = _choose_rows(rows, generator)
                self._change_rows(rows, some, contract, generator, is_copied=is_copied, is_exact=is_exact)
                _sort_some(some, generator)
        return inputs

    def _change_rows(
        self,
        rows: Tensor,
        some: Tensor,
        contract: InputContract,
        generator: torch.Generator,
        *,
        is_copied: bool,
        is_exact: bool,
    ) -> None:
        variant = self.find_variant(generator.initial_seed())
        is_whole = variant % self.whole_one_in == 0
        crowd = partial(_crowd, generator=generator, is_copied=is_copied, is_exact=is_exact)
        if variant == TIED and is_copied and not contract.distinct:
            _repeat_few(some, generator)
            return
        if contract.is_bounded:
            rows.neg_().add_((contract.low or 0) + (contract.high or 0))  # type: ignore[operator, arg-type]
            return
        if is_whole or variant == 1:
            rows.neg_()
        if variant == 0:
            crowd(some)
        elif variant in (2, 3):
            is_crowded = is_copied and variant == 3
            if is_crowded:
                crowd(some, gap=0)
            _set_apart(some, generator, is_crowded=is_crowded)
        elif variant == 4:
            _stretch(rows, generator)
        elif variant == 5:
            crowded = some.clone()
            crowd(crowded)
            some.copy_(torch.where(choose_part(some[..., :1], generator), crowded, some))


class _Tied(Ordered):
    has_ties, keeps_equal = True, True


TIES = _Tied()


class Arranged(DerivedKind):
    """Puts given values in another order: half of the rows, or a stretch of them, rise, fall, have one peak, or consist
    of runs or periods. The others stay, so that no variance becomes small.
    """

    name = "arranged"
    variants = whole_one_in = 4
    is_timed = False  # values in order take less power, so that some kernels are faster
    keeps_converted = False

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        is_other = not traits.orders_values and not traits.use.has(VARIANCES)  # `Ordered` sorts rows, too
        return is_other and bool(self._list_arrangeable(traits, inputs))

    def allows(self, contract: InputContract) -> bool:
        return is_elementwise(contract) and not contract.distinct

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        tensors, variant = self._list_arrangeable(traits, inputs), self.find_variant(generator.initial_seed())
        is_whole, chosen = draw(2, generator), draw(max(len(tensors), 1), generator)
        for tensor in tensors if is_whole else tensors[chosen : chosen + 1]:
            dim = draw_long(tensor, generator, OF_FIRST if tensor.dim() > 1 else 1.0)
            rows = _choose_rows(tensor.movedim(dim, -1), generator)
            length = min(rows.size(-1), LONGEST_SORTED)
            rows = rows.narrow(-1, draw(rows.size(-1) - length + 1, generator), length)
            is_changed = torch.rand(rows[..., :1].shape, generator=generator, device=rows.device) < 0.5
            arranged = _arrange(rows, variant, generator)
            rows.copy_(torch.where(is_changed | (is_changed.numel() == 1), arranged, rows))
        return inputs

    def _list_arrangeable(self, traits: InputTraits, inputs: Sequence[Any]) -> list[Tensor]:
        return [
            leaf.detach()
            for leaf, contract in traits.pair(inputs)
            if isinstance(leaf, Tensor) and self.allows(contract) and has_own_elements(leaf)
            if leaf.dtype in PATTERNS or not (leaf.is_floating_point() or leaf.is_complex())
            if leaf.dim() and max(leaf.shape) >= 2 * FEWEST_VALUES
        ]


def _arrange(rows: Tensor, variant: int, generator: torch.Generator) -> Tensor:
    size = rows.size(-1)
    at = torch.arange(size, device=rows.device)
    if variant == RUNS:
        length = _draw_size(2, min(size // FEWEST_VALUES, LONGEST_RUN), generator)
        return rows.index_select(-1, at // length * length)
    if variant == PERIODS:
        return rows.index_select(-1, at % _draw_size(FEWEST_VALUES, size // 2, generator))
    ordered = rows.sort(-1).values
    if variant == STRIDED:
        return _set_at_stride(ordered, generator)
    falls = torch.rand(rows[..., :1].shape, generator=generator, device=rows.device) < 0.5
    ordered = torch.where(falls, ordered.flip(-1), ordered)
    with_peak = ordered.index_select(-1, torch.cat([at[::2], at[1::2].flip(0)]))
    has_peak = torch.rand(falls.shape, generator=generator, device=rows.device) < 0.5
    return torch.where(has_peak, with_peak, ordered)


def _draw_size(least: int, most: int, generator: torch.Generator) -> int:
    """Draw one as likely in each power of two."""
    return int(least * max(most / least, 1.0) ** draw_share(generator))


def _repeat_few(rows: Tensor, generator: torch.Generator) -> None:
    """Give each row few of its own values."""
    size = rows.size(-1)
    few = 1 + int((size // 2) ** draw_share(generator))
    sources = torch.randint(size, (*rows.shape[:-1], few), generator=generator, device=rows.device)
    chosen = torch.randint(few, rows.shape, generator=generator, device=rows.device)
    rows.copy_(rows.gather(-1, sources.gather(-1, chosen)))


def _cluster(vectors: Tensor, generator: torch.Generator) -> None:
    """Move vectors, of a large tensor those of each part, towards few of them."""
    least, most = NEARER
    share = 0.5 ** (least + draw(most - least + 1, generator))
    few = int(FEW ** draw_share(generator))
    for part in split_for_device(vectors):
        flat = part.reshape(-1, part.size(-1))
        centres = torch.randint(len(flat), (few,), generator=generator, device=flat.device)
        centres = centres[torch.randint(few, (len(flat),), generator=generator, device=flat.device)]
        part.copy_((flat[centres] * (1 - share) + flat * share).view(part.shape))


def _view_rows(tensor: Tensor, dim: int | None) -> Tensor:
    if dim is None and tensor.is_contiguous():
        return tensor.view(1, -1)
    return tensor.movedim(dim if dim is not None and dim < tensor.dim() else -1, -1)


def _choose_rows(rows: Tensor, generator: torch.Generator) -> Tensor:
    """Return all rows, or neighbouring ones of a large tensor, since sorting needs ten times their memory."""
    most = count_part(rows)
    for axis, size in enumerate(rows.shape):
        length = max(min(most * size // rows.numel(), size), 1)
        rows = rows.narrow(axis, draw(size - length + 1, generator), length)
    return rows


def _sort_some(rows: Tensor, generator: torch.Generator) -> None:
    """Sort about half of the rows: of these half so that successive values lie a stride apart, others but for few
    elements.
    """
    falls, share = torch.rand((2, *rows[..., :1].shape), generator=generator, device=rows.device)
    ordered = rows.sort(-1).values
    ordered = torch.where(falls < 0.5, ordered.flip(-1), ordered)
    strided = _set_at_stride(ordered, generator)
    nearly = exchange_few(ordered, generator)
    ordered = torch.where(share < 0.15, nearly, torch.where(share < 0.25, ordered, strided))
    rows.copy_(torch.where(share < 0.5, ordered, rows))


def _set_at_stride(ordered: Tensor, generator: torch.Generator) -> Tensor:
    """Return rows in which successive values lie a stride apart."""
    size = ordered.size(-1)
    stride = 2 ** draw(size.bit_length(), generator)
    places = (torch.arange(size, device=ordered.device) % stride).argsort(stable=True)
    return torch.empty_like(ordered).index_copy_(-1, places, ordered)


def _stretch(rows: Tensor, generator: torch.Generator) -> None:
    least = rows[tuple(unravel(draw(rows.numel(), generator), rows.shape))].clone()
    for part in split_for_device(rows):
        part.add_((part - least).clamp_(min=0), alpha=STRETCHED_BY)


def _set_apart(rows: Tensor, generator: torch.Generator, *, is_crowded: bool) -> None:
    """Move the largest few values of a row far up, or the least ones far down, of close values one; all others come
    close together. With shorter formats, or in longer rows, some would become equal.
    """
    size, shape = rows.size(-1), rows[..., :1].shape
    if size > LONGEST_APART or rows.element_size() < 4:
        return
    few = 1 + torch.randint(1 if is_crowded else min(FEW, size), shape, generator=generator, device=rows.device)
    moves_up = torch.rand(shape, generator=generator, device=rows.device) < 0.5
    ordered = rows.sort(-1).values
    bound = ordered.gather(-1, torch.where(moves_up, size - few, few - 1))
    distance = (ordered[..., -1:] - ordered[..., :1]).clamp_(min=torch.finfo(rows.dtype).tiny)
    shift = torch.where(moves_up, (rows >= bound) * APART, (rows <= bound) * -APART)
    rows.mul_(CLOSER if is_crowded else torch.exp2(-distance.log2().ceil_())).add_(shift)


def _crowd(rows: Tensor, generator: torch.Generator, *, is_copied: bool, is_exact: bool, gap: int = GAP) -> None:
    """Make the values of a row follow each other at one distance."""
    pattern, digits = PATTERNS[rows.dtype], -round(math.log2(torch.finfo(rows.dtype).eps))
    wanted = (NEAREST if is_copied else CLOSEST if is_exact else NEAR) * 2.0**digits
    largest = LARGER if is_exact else LARGEST
    step = int(min(max(wanted, is_copied), (MOST_BINADES << digits) // rows.size(-1)))
    if step == 0:
        return
    ordered, order = rows.sort(-1)
    ranks = (ordered.diff(dim=-1, prepend=ordered[..., :1]) != 0).cumsum(-1).mul_(step)
    least = ordered.abs().amax(-1, keepdim=True)
    least = least.mul_(SMALLER) if is_copied else least.clamp_(max=largest[draw(len(largest), generator)])
    if is_copied:  # one larger distance, so that most values share a part of the range
        above = torch.randint(rows.size(-1), (*rows.shape[:-1], 1), generator=generator, device=rows.device)
        ranks += (ranks > above * step) * (gap << digits)
    bits = (least.view(pattern.integer) + ranks).to(pattern.integer)
    crowded = torch.empty_like(rows).scatter_(-1, order, bits.view(rows.dtype))
    rows.copy_(crowded.neg_() if draw(2, generator) else crowded)
