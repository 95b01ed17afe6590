"""Describes a problem's inputs, to select the kinds of inputs for its candidates."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, repeat
from typing import Any, Literal

import torch
from torch import Tensor

from harness.domain import InputContract, Problem
from harness.problems.inputs.conformity import find_range, find_violation
from harness.problems.inputs.draws import Draw
from harness.problems.inputs.tensors import (
    PATTERNS,
    choose_part,
    copy_apart,
    count_part,
    draw,
    floating_tensors,
    has_many_digits,
    has_own_elements,
    split_for_device,
)
from harness.problems.operators import COMPARISONS, NO_USE, VARIANCES, OperatorUse
from harness.protocol import list_leaves
from harness.tensors.outputs import unravel

ANY = InputContract()
KEPT_DIGITS = 7
COPIED_ONE_IN = 4  # pairs of stated numbers
STRUCTURES = ("probabilities", "symmetric", "positive_definite", "triangular", "sorted", "permutation")
ELEMENTWISE = ("integer", "index")  # if stated; and real numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTraits:
    """If not `is_known`, only `problem` and `contracts` are valid. `use` lists operators that the reference calls.

    `contracts` has one for each value of the inputs; any real numbers follow. `fewest_drawn` is the number of elements
    of the smallest `torch.rand` (0 without one). `redrawn` are draws in `get_inputs` that kinds change. `has_state` is
    true if the reference has weights or calls change its state. `weights` are its matrices.
    """

    problem: Problem
    is_known: bool = False
    use: OperatorUse = NO_USE
    contracts: tuple[InputContract, ...] = ()
    redrawn: frozenset[Draw] = frozenset()
    draws_integers: bool = False
    fewest_drawn: int = 0
    returns_floats: bool = False
    returns_others: bool = False
    returns_16_bits: bool = False
    has_state: bool = False
    weights: tuple[Tensor, ...] = ()

    @property
    def orders_values(self) -> bool:
        """True if outputs tell which of some values is larger."""
        return self.use.orders_values or (self.returns_others and self.use.has(COMPARISONS))

    @property
    def has_weighted_variances(self) -> bool:
        """Legitimate programs differ in the variances of products whose values are nearly constant."""
        return self.has_state and self.use.has(VARIANCES)

    @property
    def has_varied_products(self) -> bool:
        return self.has_weighted_variances and self.use.terms.multiplied > 0

    @property
    def has_intermediate(self) -> bool:
        """True if arithmetic follows arithmetic: its roundings change outputs as those of inputs do not."""
        return self.use.terms.operators > 1

    @property
    def keeps_all(self) -> bool:
        """True if legitimate programs keep the digits of small values beside large ones."""
        return self.keeps_unconverted and not self.use.converts_to_integers

    @property
    def keeps_unconverted(self) -> bool:
        """True if they keep those of arguments that do not become integers: fast products mix digits, some functions
        lose them beside 1, and where values are ordered, roundings may decide.
        """
        terms = self.use.terms
        return self.is_known and not terms.multiplied and not terms.functions and not self.use.orders_values

    def pair(self, inputs: Sequence[Any]) -> Iterator[tuple[Any, InputContract]]:
        """Yield each value with its contract."""
        return zip(list_leaves(inputs), chain(self.contracts, repeat(ANY)), strict=False)

    def list_refillable(self, inputs: Sequence[Any]) -> list[Tensor]:
        return [
            tensor
            for leaf, contract in self.pair(inputs) if contract.may_be_refilled
            for tensor in floating_tensors(leaf)
        ]  # fmt: skip

    def keeps_structure(self, inputs: Sequence[Any]) -> bool:
        """Return False if changed draws made values that their contracts do not allow."""
        made = ((leaf, one) for leaf, one in self.pair(inputs) if one.is_redrawn and one.kind in STRUCTURES)
        return not any(find_violation(*pair) for pair in made)

    def keep_bounds(self, inputs: Sequence[Any]) -> None:
        """Move values beyond known bounds to these, in place."""
        for leaf, contract in self.pair(inputs):
            if contract.has_known_bounds and contract.kind == "real" and contract.is_bounded:
                for tensor in floating_tensors(leaf):
                    tensor.clamp_(contract.low, contract.high)  # type: ignore[arg-type]


def list_exchangeable(inputs: Sequence[Any], traits: InputTraits) -> list[int]:
    """Return the places among the leaves of tensors that may change element by element. Where the reference orders
    values, floats of few digits, such as a permutation, would be equal to each other.
    """

    def may_tie(one: Tensor) -> bool:
        return traits.use.orders_values and one.is_floating_point() and not has_many_digits(one)

    return [place for place, one in _list_elementwise(inputs, traits) if not may_tie(one)]


def exchange_part(inputs: Sequence[Any], others: Sequence[Any], place: int, seed: int, *, only_one: bool) -> None:
    """Write one element or a part of a tensor of `others` to the same places of `inputs`, in place."""
    mine, theirs = (list(list_leaves(one))[place].detach() for one in (inputs, others))
    generator = torch.Generator(device=mine.device).manual_seed(seed)
    if only_one:
        index = tuple(unravel(draw(mine.numel(), generator), mine.shape))
        mine[index] = theirs[index]
    else:
        mine.copy_(torch.where(choose_part(mine, generator), theirs, mine))


def exchange_slices(inputs: Sequence[Any], traits: InputTraits, seed: int, *, count: int) -> bool:
    """Round one tensor so that its sums are exact in any order, and exchange two slices of it in each of `count`
    dimensions, in place. Return False if it has fewer, or none may change element by element.
    """
    tensors = [one for _, one in _list_elementwise(inputs, traits) if one.numel() > 1]
    if not tensors:
        return False
    generator = torch.Generator(device=tensors[0].device).manual_seed(seed)
    one = tensors[draw(len(tensors), generator)]
    if one.dtype in PATTERNS:
        _round(one)
    order = torch.randperm(one.dim(), generator=generator, device=one.device).tolist()
    dims = [dim for dim in order if one.size(dim) > 1]
    for dim in dims[:count]:
        size = one.size(dim)
        first = draw(size, generator)
        pair = torch.tensor([first, (first + 1 + draw(size - 1, generator)) % size], device=one.device)
        one.index_copy_(dim, pair, one.index_select(dim, pair.flip(0)))
    return count <= len(dims)


def list_alike(tensors: Sequence[tuple[Tensor, InputContract]]) -> list[tuple[Tensor, Tensor, InputContract]]:
    """Return pairs of small tensors that may have the same values, since each is sometimes larger: of such that differ
    in one size, but that of rows, the parts that both have.
    """
    return [
        (*parts, first)
        for (one, first), (other, second) in combinations(tensors, 2)
        if one.dim() and one.dtype == other.dtype and one.numel() <= count_part(one)
        if (first.kind, first.low, first.high, first.also) == (second.kind, second.low, second.high, second.also)
        for parts in _cut_to_one_shape(one, other, first.dim)
        if bool((parts[0] < parts[1]).any()) and bool((parts[0] > parts[1]).any())
    ]


def _cut_to_one_shape(one: Tensor, other: Tensor, rows: int | Literal["all"]) -> list[tuple[Tensor, Tensor]]:
    """Return no pair of tensors that differ in more than one size, or in that of `rows`."""
    dims = [dim for dim, size in enumerate(one.shape) if one.dim() == other.dim() and size != other.size(dim)]
    if one.dim() != other.dim() or len(dims) > 1 or (dims and (rows == "all" or dims[0] == rows % one.dim())):
        return []
    for dim in dims:
        size = min(one.size(dim), other.size(dim))
        one, other = one.narrow(dim, 0, size), other.narrow(dim, 0, size)
    return [(one, other)]


def list_numbers(inputs: Sequence[Any], traits: InputTraits) -> list[tuple[Tensor, InputContract]]:
    """Return small integer tensors, or the halves of one with two rows or columns, but none that may have to differ."""
    return [
        (part, contract)
        for leaf, contract in traits.pair(inputs)
        if isinstance(leaf, Tensor) and contract.kind in ELEMENTWISE and not leaf.is_meta and has_own_elements(leaf)
        if leaf.numel() <= count_part(leaf) and (contract.is_stated or len(torch.unique(leaf)) < leaf.numel())
        for part in (leaf.unbind(leaf.shape.index(2)) if leaf.dim() > 1 and 2 in leaf.shape else [leaf])
    ]


def relate_numbers(inputs: Sequence[Any], traits: InputTraits, generator: torch.Generator) -> None:
    """Make one of two alike arguments a copy of the other at other places; or both, if they may be any numbers, the
    edges of one path.
    """
    alike = list_alike(list_numbers(inputs, traits))
    if not alike:
        return
    one, other, contract = alike[draw(len(alike), generator)]
    if one.dim() > 1 or not contract.is_stated or not draw(COPIED_ONE_IN, generator):
        other.copy_(copy_apart(one, generator))
        return
    low, high = find_range(one, contract)
    count = min(high - low, len(one)) + 1
    nodes = low + torch.rand(count, generator=generator, device=one.device).argsort()
    at = torch.arange(len(one), device=one.device)
    one.copy_(nodes[at % count])
    other.copy_(nodes[(at + 1) % count])


def _round(tensor: Tensor) -> None:
    largest = max(map(abs, map(float, tensor.aminmax())))
    if 0 < largest < math.inf:
        step = 2.0 ** (math.floor(math.log2(largest)) - KEPT_DIGITS)
        for part in split_for_device(tensor):
            part.copy_((part / step).trunc() * step)


def _list_elementwise(inputs: Sequence[Any], traits: InputTraits) -> list[tuple[int, Tensor]]:
    """Return (place among the leaves, tensor) of those whose elements may change one by one."""
    return [
        (place, one.detach())
        for place, (one, contract) in enumerate(traits.pair(inputs))
        if isinstance(one, Tensor) and one.numel() and has_own_elements(one) and is_elementwise(contract)
    ]  # fmt: skip


def is_elementwise(contract: InputContract) -> bool:
    """True if elements may have any values that the contract names, each by itself, but for `distinct` ones."""
    return contract.is_free if contract.kind == "real" else contract.is_stated and contract.kind in ELEMENTWISE
