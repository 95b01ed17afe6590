"""Takes away what values have in common though their contract does not say so: equal values in every call, one mark in
each row, marks that come first, whole numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from harness.domain import InputContract
from harness.problems.inputs.conformity import find_range, spread
from harness.problems.inputs.kind import DISCRETE, DerivedKind, Inputs
from harness.problems.inputs.tensors import (
    FEW,
    FLOATS,
    MASKED,
    choose_box,
    choose_part,
    draw,
    draw_in_range,
    draw_near_end,
    draw_share,
    draw_sizes,
    exchange_few,
    find_marks,
    give_most,
    has_own_elements,
    is_square,
    mark_path,
    mark_snake,
    narrow,
    rearrange,
    split_for_device,
    split_parts,
    take_sample,
    without_repeats,
)
from harness.problems.inputs.traits import InputTraits, list_alike, list_numbers, relate_numbers
from harness.problems.operators import INTEGERS
from harness.protocol import map_leaves

FLIPPED_SHARE, FLIPPED_IN_PART = 0.125, 0.5  # of the elements of masks: of all, or of a chosen part
POWERS = (0.25, 1.0, 4.0)  # of the positions of sorted values
FLAT_AND_STEEP = (0.25, 1.0, 8.0)  # powers of probabilities
SCALED = ("symmetric", "positive_definite", "triangular")
LEAST_FACTOR = 1 / 64  # of rows and columns: direct solutions lose no digits by it, iterations converge slowly
EXTREME_ONE_IN = 4  # changed integers
# Forms of changed integers, alike for all arguments: few of the range; each power of two; most are the least; any.
NARROW_FORMS, SPREAD, SPARSE, INTEGER_FORMS = 3, 3, 4, 6
NUMBER_FORMS, FEW_NUMBERS = 4, 16  # of Python numbers: the first of the range; any; else as likely in each power of two
LIMITS_ONE_IN = 2  # changes beside those of another kind
NEAR_A_BOUND = range(3, 8)  # powers of two by which distances from it are divided
RELATED = (1, 2, 4, 5)  # variants in which arguments may be copies of each other
ISOTROPIC, LARGEST_ISOTROPIC = ("symmetric", "positive_definite"), 16  # rows
MASK_FORMS = ("empty", "few", "rows", "box", "snake", "path")  # those of matrices, and the last of square ones
MASKS_OF = 4  # changes of zeros or ones alone: all but one of so many


class General(DerivedKind):
    """Half of the changes are in a secret part only. Changes of whole inputs go to the limits: one index or one place
    for most elements, probabilities of zero, and multiples of the identity. In others one of two integer arguments
    that may be the same is a shifted or reversed copy of the other.
    """

    name = "general"
    variants, whole_one_in = 9, 3
    is_of_draws = True
    is_combined = False

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        is_any = any(may_generalise(leaf, contract) for leaf, contract in traits.pair(inputs))
        return is_any or bool(list_alike(list_numbers(inputs, traits)))

    def scales_values(self, traits: InputTraits) -> bool:
        return any(
            one.has_pattern or one.states_bounds or one.kind in SCALED or not one.is_stated for one in traits.contracts
        )

    def change(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        contracts = (contract for _, contract in traits.pair(inputs))
        changes = {**_CHANGES, **_LIMITS} if self.changes_all(generator.initial_seed()) else {**_CHANGES}
        if draw(2, generator):
            changes["real"] = partial(_approach_bound, is_high=bool(draw(2, generator)))
        if changes["integer"] is _change_integers:
            changes["integer"] = changes["index"] = partial(_change_integers, form=draw(INTEGER_FORMS, generator))
        changed: Inputs = map_leaves(inputs, lambda leaf: _generalise(leaf, next(contracts), generator, changes))
        if self.find_variant(generator.initial_seed()) in RELATED:
            relate_numbers(changed, traits, generator)
        return changed

    def change_discrete(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        """Change masks, stated integers and probabilities, at times to their limits; give drawn values more digits."""
        changes = _CHANGES if draw(LIMITS_ONE_IN, generator) else {**_CHANGES, **_LIMITS}
        contracts = (contract for _, contract in traits.pair(inputs))

        def change(leaf: Any) -> Any:
            contract = next(contracts)
            is_known = contract.kind == "mask" or (contract.is_stated and contract.kind in DISCRETE)
            has_few_digits = contract.has_pattern and not contract.is_constant and not contract.is_converted
            is_known |= contract.kind == "real" and has_few_digits
            return _generalise(leaf, contract, generator, changes) if is_known else leaf

        changed: Inputs = map_leaves(inputs, change)
        return changed

    def explain(self, traits: InputTraits, inputs: Sequence[Any]) -> str:
        changed = {contract.explanation for leaf, contract in traits.pair(inputs) if may_generalise(leaf, contract)}
        return "; ".join(sorted(changed))


def may_generalise(leaf: Any, contract: InputContract) -> bool:
    if contract.kind == "real":
        return contract.has_pattern or (contract.states_bounds and _is_changeable(leaf) and leaf.dtype in FLOATS)
    if contract.kind not in _CHANGES:
        return False
    if not isinstance(leaf, Tensor):
        return isinstance(leaf, int | float) and not isinstance(leaf, bool) and contract.kind in ("integer", "index")
    if not _is_changeable(leaf) or (contract.kind == "mask" and contract.structure == "causal"):
        return False
    is_small = contract.kind in ISOTROPIC and leaf.size(-1) <= LARGEST_ISOTROPIC
    return contract.is_stated or contract.is_constant or contract.kind == "mask" or is_small


def _is_changeable(leaf: Any) -> bool:
    is_usable = isinstance(leaf, Tensor) and not leaf.is_meta and bool(leaf.numel())
    return is_usable and has_own_elements(without_repeats(leaf))


def _generalise(leaf: Any, contract: InputContract, generator: Generator, changes: "Mapping[str, Change]") -> Any:
    if not may_generalise(leaf, contract):
        return leaf
    if not isinstance(leaf, Tensor):
        return _change_number(leaf, contract, generator)
    given = without_repeats(leaf.detach())
    place = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device=given.device)
    change = changes[contract.kind] if contract.is_stated or contract.kind not in ISOTROPIC else _make_isotropic
    return place.copy_(change(given, contract, generator)).expand_as(leaf)


def _change_number(given: float, contract: InputContract, generator: Generator) -> float:
    if contract.kind == "real":
        value = given * (0.5 + draw_share(generator))
        value = value if contract.low is None else max(value, float(contract.low))
        return value if contract.high is None else min(value, float(contract.high))
    low, high = (int(given if bound is None else bound) for bound in (contract.low, contract.high))
    count = high - low + 1
    form = draw(NUMBER_FORMS, generator)
    if form < 2:
        return type(given)(low + draw(count if form else min(count, FEW_NUMBERS), generator))
    return type(given)(low + int(count ** draw_share(generator)) - 1)


def _change_reals(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Zeros among drawn values become others; elsewhere they stay, as in triangles, unless all are zero. Zeros or ones
    alone may be factors or a mask.
    """
    if contract.states_bounds:
        return _draw_between(given, contract, generator)
    if given.numel() > 1 and bool((given == 0).all() | (given == 1).all()) and draw(MASKS_OF, generator):
        return _change_mask(given, contract, generator)
    changed, is_zero = given.clone(), not bool(given.count_nonzero())
    known = take_sample(given)
    known = known[known != 0] if contract.is_free else given.new_empty(0)
    for part in split_for_device(changed):
        draws = torch.rand(part.shape, generator=generator, device=part.device)
        if len(known):
            places = (draws * len(known)).long().clamp_(max=len(known) - 1)
            part.copy_(torch.where(part == 0, known[places], part))
        part.copy_(draws - 0.5 if is_zero else part * (0.5 + draws).to(part.dtype))
    return _keep_most(changed, given, generator, only_slices=False)


def _draw_between(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Write bounds, and between two of them other values, to secret elements or slices."""
    bounds = [float(bound) for bound in (contract.low, contract.high) if bound is not None]
    changed, chosen = given.clone(), choose_part(given, generator).expand_as(given)
    for part, mask in zip(split_parts(changed), split_parts(chosen), strict=True):
        draws = torch.rand(part.shape, generator=generator, device=part.device)
        values = part.float()
        if len(bounds) > 1:
            values = bounds[0] + (bounds[1] - bounds[0]) * draws
        _write_extremes(values, bounds[0], bounds[-1], generator)
        part.copy_(torch.where(mask, values.to(part.dtype), part))
    return changed


def _keep_most(changed: Tensor, given: Tensor, generator: Generator, *, only_slices: bool) -> Tensor:
    """In half of the calls change only secret elements or slices, which a sample mostly misses. Change only slices of
    masks, since outputs may not show single elements.
    """
    if not given.dim() or draw(2, generator):
        return changed
    mask = choose_part(given, generator, only_slices=only_slices).expand_as(given)
    for part, ours, chosen in zip(*map(split_parts, (changed, given, mask)), strict=True):
        part.copy_(torch.where(chosen, part, ours))
    return changed


def _change_mask(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Exchange the two values of random elements; at times give whole slices one of them."""
    low, high = (given.new_tensor(mark) for mark in _find_marks(given))
    if contract.structure == "lengths":
        return _draw_lengths(given, low, high, generator)
    is_part = given.dim() > 0 and bool(draw(2, generator))
    changed = given.clone()
    for part in split_parts(changed):
        draws = torch.rand(part.shape, generator=generator, device=part.device)
        flipped = torch.where(part == low, high, low)
        part.copy_(torch.where(draws < (FLIPPED_IN_PART if is_part else FLIPPED_SHARE), flipped, part))
    if is_part:
        chosen, whole = (choose_part(given, generator, only_slices=True).expand_as(given) for _ in range(2))
        changed = torch.where(chosen, changed, given)
        changed = torch.where(whole, (low, high)[draw(2, generator)], changed) if draw(2, generator) else changed
    keeps_one = contract.structure == "nonempty" or float(low) <= MASKED  # a softmax of minus infinities alone is NaN
    return _keep_one_in_each_row(changed, given, low) if keeps_one else changed


def _find_marks(given: Tensor) -> tuple[float, float]:
    if (marks := find_marks(given)) is not None:
        return marks
    only = float(given.flatten()[0])
    return (only, 1.0) if only <= 0 else (0.0, only)


def _keep_one_in_each_row(changed: Tensor, given: Tensor, low: Tensor) -> Tensor:
    return torch.where((changed == low).all(-1, keepdim=True), given, changed)


def _draw_lengths(given: Tensor, low: Tensor, high: Tensor, generator: Generator) -> Tensor:
    size, shape = given.size(-1), (*given.shape[:-1], 1)
    lengths = torch.randint(1, size + 1, shape, generator=generator, device=given.device)
    _write_extremes(lengths, 1, size, generator)
    first = given[..., :1]
    others = torch.where(first == low, high, low)
    changed = torch.where(torch.arange(size, device=given.device) < lengths, first, others)
    return torch.where(choose_part(first, generator), changed, given)  # of whole rows


def _write_extremes(values: Tensor, low: float, high: float, generator: Generator) -> None:
    chosen = torch.randint(2 * EXTREME_ONE_IN, values.shape, generator=generator, device=values.device)
    values.masked_fill_(chosen == 0, low).masked_fill_(chosen == 1, high)


def _change_integers(given: Tensor, contract: InputContract, generator: Generator, form: int = NARROW_FORMS) -> Tensor:
    low, high = find_range(given, contract)
    if not contract.is_stated:
        return rearrange(given, generator)
    form = SPREAD if given.numel() == 1 and draw(2, generator) else form
    if form == SPARSE:
        few = draw_sizes(low, high, given, generator, is_sparse=True)
        return _keep_most(few.to(given.dtype), given, generator, only_slices=True)
    drawn = (draw_sizes if form == SPREAD else draw_in_range)(low, high, given, generator)
    if form < NARROW_FORMS:
        return narrow(drawn, low, high, form).to(given.dtype)
    chosen = torch.randint(EXTREME_ONE_IN, given.shape, generator=generator, device=given.device)
    changed = torch.where(chosen == 0, narrow(drawn, low, high), drawn)
    _write_extremes(changed, low, high, generator)
    for value in contract.also:
        chosen = torch.randint(2 * EXTREME_ONE_IN, given.shape, generator=generator, device=given.device)
        changed.masked_fill_(chosen == 0, value)
    return _keep_most(changed.to(given.dtype), given, generator, only_slices=False)


def _change_one_hot(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    rows = spread(given, contract)
    places = torch.randint(rows.size(-1), (*rows.shape[:-1], 1), generator=generator, device=rows.device)
    _write_extremes(places, 0, rows.size(-1) - 1, generator)
    return _gather(torch.zeros_like(rows).scatter_(-1, places, 1), given, contract)


def _gather(rows: Tensor, given: Tensor, contract: InputContract) -> Tensor:
    """Undo `spread`."""
    if contract.dim == "all" or not given.dim():
        return rows.reshape(given.shape)
    return rows.movedim(-1, contract.dim)


def _change_permutation(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    rows = spread(given, contract)
    draws = torch.rand(rows.shape, generator=generator, device=rows.device)
    drawn = draws.argsort(-1)
    places = torch.arange(rows.size(-1), device=rows.device).expand_as(rows)
    choice = draw(EXTREME_ONE_IN, generator)
    turned = places.roll(draw(rows.size(-1), generator), -1)
    ordered = (turned, turned.flip(-1), exchange_few(places, generator))
    chosen = ordered[choice] if choice < len(ordered) else drawn
    return _gather(chosen.to(given.dtype), given, contract)


def _change_probabilities(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Make some rows flatter and some steeper."""
    rows = spread(given, contract)
    powers = torch.tensor(FLAT_AND_STEEP, device=rows.device, dtype=torch.float64)
    chosen = powers[torch.randint(len(FLAT_AND_STEEP), (*rows.shape[:-1], 1), generator=generator, device=rows.device)]
    changed = rows.double() ** chosen
    return _gather((changed / changed.sum(-1, keepdim=True)).to(given.dtype), given, contract)


def _change_sorted(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Keep the ends of each row."""
    rows = spread(given, contract)
    first, last = rows[..., :1].double(), rows[..., -1:].double()
    shares = torch.rand(rows.shape, generator=generator, device=rows.device, dtype=torch.float64)
    changed = first + (last - first) * shares ** POWERS[draw(len(POWERS), generator)]
    changed = (changed.round() if given.dtype in INTEGERS else changed).sort(-1).values.to(given.dtype)
    changed[..., 0], changed[..., -1] = rows[..., 0], rows[..., -1]
    return _gather(changed, given, contract)


def _change_counts(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Distribute what is above the least count over the elements."""
    rows = spread(given, contract).long()
    least = int(contract.low or 0)
    total = (rows - least).sum(-1, keepdim=True)
    shares = torch.rand((*rows.shape[:-1], rows.size(-1) - 1), generator=generator, device=rows.device)
    ends = (shares ** POWERS[draw(len(POWERS), generator)] * (total + 1)).long().clamp(max=total).sort(-1).values
    ends = torch.cat([torch.zeros_like(total), ends, total], dim=-1)
    return _gather((ends.diff(dim=-1) + least).to(given.dtype), given, contract)


def _change_symmetric(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Change the sign of half of the matrices, too."""
    factors = 0.5 + torch.rand(given.shape, generator=generator, device=given.device).to(given.dtype)
    is_negated = torch.rand((*given.shape[:-2], 1, 1), generator=generator, device=given.device) < 0.5
    return torch.where(is_negated, -given, given) * (factors.tril() + factors.tril(-1).mT)


def _change_positive_definite(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    draws = torch.rand(given.shape[:-1], generator=generator, device=given.device).to(given.dtype)
    factors = 0.5 + draws if draw(2, generator) else LEAST_FACTOR**draws
    return given * (factors[..., :, None] * factors[..., None, :])


def _make_isotropic(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Make some matrices a multiple of the identity, others one but for one direction."""
    mean = given.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None].bfloat16().to(given.dtype)
    isotropic = mean * torch.eye(given.size(-1), device=given.device, dtype=given.dtype)
    first = given[..., :1]
    has_rest, stays = (torch.rand((2, *mean.shape), generator=generator, device=given.device) < 0.5).unbind()
    return torch.where(stays, given, isotropic + has_rest * first * first.mT)


def _go_to_limit(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    if given.dim() and draw(2, generator):
        return exchange_few(_put_in_order(given, contract, generator).flatten(), generator).view(given.shape)
    changed = _change_integers(given, contract, generator)
    if not contract.is_stated:  # they may have to differ
        return changed
    if contract.also and not draw(3, generator):
        return torch.full_like(given, contract.also[draw(len(contract.also), generator)])
    return give_most(changed, changed.flatten()[draw(changed.numel(), generator)], generator)


def _put_in_order(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    if contract.is_stated and draw(2, generator):
        low, high = find_range(given, contract)
        shape = given.shape if draw(2, generator) else given.shape[-1:]
        places = torch.arange(shape.numel(), device=given.device).view(shape) % min(high - low + 1, given.numel())
        return (low + places).to(given.dtype).expand_as(given)
    return given.flatten().sort().values.view(given.shape)


def _jump(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Give each sorted value one of the ends of its row, or the stated least value instead of the first."""
    rows = spread(given, contract)
    first = rows[..., :1] if contract.low is None else torch.full_like(rows[..., :1], contract.low)  # type: ignore[arg-type]
    places = torch.arange(rows.size(-1), device=rows.device)
    least = int(contract.low is None or bool((rows[..., 0] == float(contract.low)).all()))  # is the first fixed?
    ends = torch.randint(least, max(rows.size(-1), 2), (*rows.shape[:-1], 1), generator=generator, device=rows.device)
    if draw(2, generator):
        ends.fill_(max(draw_near_end(rows.size(-1), generator), least))
    return _gather(torch.where(places < ends, first, rows[..., -1:]), given, contract)


def _approach_bound(given: Tensor, contract: InputContract, generator: Generator, *, is_high: bool) -> Tensor:
    """Move all values, of each argument alike, towards the lower or the upper bound: weak effects add up over many
    elements.
    """
    if not contract.states_bounds:
        return _change_reals(given, contract, generator)
    bounds = [float(bound) for bound in (contract.low, contract.high) if bound is not None]
    bound, changed = bounds[-is_high], given.clone()
    share = 0.5 ** NEAR_A_BOUND[draw(len(NEAR_A_BOUND), generator)]
    for part in split_for_device(changed):
        part.copy_(bound + (part - bound) * share)
    return changed


def _leave_one(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Give all elements, all but few, all but a box or a snake, or all but one of each row (in square masks at times
    the next node of a path) the same value. If possible, one keeps its own.
    """
    if contract.structure == "lengths" or not given.dim():
        return _change_mask(given, contract, generator)
    low, high = (given.new_tensor(mark) for mark in _find_marks(given))
    needs_one = contract.structure == "nonempty"
    form = MASK_FORMS[draw(len(MASK_FORMS) - (not is_square(given)) - (given.dim() < 2), generator)]
    if form == "box":
        changed = torch.where(choose_box(given, generator), given, (low, high)[needs_one or not draw(4, generator)])
        return _keep_one_in_each_row(changed, given, low) if float(low) <= MASKED else changed
    if form == "empty" and not needs_one and float(low) > MASKED:
        return low.expand_as(given).clone()
    if form in ("empty", "few"):
        few = int(FEW ** draw_share(generator))
        places = torch.randint(given.numel(), (few,), generator=generator, device=given.device)
        rare, most = (low, high) if needs_one or draw(4, generator) else (high, low)
        changed = most.expand_as(given).flatten().index_fill(0, places, rare).view(given.shape)
        return _keep_one_in_each_row(changed, given, low) if needs_one or float(low) <= MASKED else changed
    kept, other = (high, low) if needs_one or draw(2, generator) or form == "path" else (low, high)
    if form == "snake":
        changed = torch.where(mark_snake(given, generator), kept, other)
        return _keep_one_in_each_row(changed, given, low) if float(low) <= MASKED else changed
    shares = torch.rand(given.shape, generator=generator, device=given.device)
    if form == "path":
        shares = shares + mark_path(given.size(-1), generator) * 2
    places = torch.where(given == kept, shares, shares - 1).argmax(-1, keepdim=True)
    changed = other.expand_as(given).scatter(-1, places, kept.expand_as(places))
    return _keep_one_in_each_row(changed, given, low) if float(low) <= MASKED else changed


def _count_one(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Give one element all that is above the least count."""
    rows = spread(given, contract)
    least = int(contract.low or 0)
    places = torch.randint(rows.size(-1), (*rows.shape[:-1], 1), generator=generator, device=rows.device)
    above = (rows - least).sum(-1, keepdim=True).to(rows.dtype)
    return _gather(torch.full_like(rows, least).scatter_add_(-1, places, above), given, contract)


def _empty_most(given: Tensor, contract: InputContract, generator: Generator) -> Tensor:
    """Give most elements of each row a probability of zero, but not the largest."""
    rows = spread(given, contract)
    emptied = give_most(rows, rows.new_zeros(()), generator)
    kept = torch.where(rows == rows.amax(-1, keepdim=True), rows, emptied).double()
    return _gather((kept / kept.sum(-1, keepdim=True)).to(given.dtype), given, contract)


Change = Callable[[Tensor, InputContract, Generator], Tensor]
_LIMITS: dict[str, Change] = {
    "mask": _leave_one, "integer": _go_to_limit, "index": _go_to_limit, "probabilities": _empty_most, "sorted": _jump,
    "counts": _count_one, "symmetric": _make_isotropic, "positive_definite": _make_isotropic,
}  # fmt: skip
_CHANGES: dict[str, Change] = {
    "real": _change_reals, "integer": _change_integers, "index": _change_integers, "mask": _change_mask,
    "one_hot": _change_one_hot, "permutation": _change_permutation, "probabilities": _change_probabilities,
    "sorted": _change_sorted, "counts": _change_counts, "symmetric": _change_symmetric,
    "positive_definite": _change_positive_definite, "triangular": _change_reals,
}  # fmt: skip
