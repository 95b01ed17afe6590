"""Compares one output with the truth, by the rule of `allowed_errors`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from harness.domain import Tolerance
from harness.evaluation.correctness.allowed_errors import (
    BLOCK,
    COPIED_EPS,
    FEW_WRONG,
    LEAF_MEAN_SHARE,
    OUTLIER_LIMIT,
    OUTLIER_SHARE,
    RATED,
    Floor,
    count_lost,
    count_lost_by_chance,
    count_roundings,
    find_floor,
    multiply_rows,
    rate_whole,
)
from harness.evaluation.correctness.truth import TruthLeaf
from harness.problems.operators import Terms
from harness.tensors.fill_values import Fills, find_fills
from harness.tensors.outputs import unravel, widen_small
from harness.tensors.values import cut_slices
from harness.tensors.wrong_elements import MOST_ELEMENTS, describe_wrong

# Elements converted to float64 at a time. On a CPU few enough to stay in the cache and in one thread: waking threads
# for some thirty small operations costs more than it saves. On a GPU enough to fill it.
CHUNK = {"cpu": BLOCK * 32, "cuda": BLOCK * 8192}
Masks = Sequence[tuple[int, Tensor]]  # the first element of a slice, and which of its elements are wrong
ROUNDING_SLACK = 1 + 1e-12  # so that the reference passes its own limit
SMALLEST = 1e-300
NO_NUMBER = 1e30
MOST_SEARCHED = 1 << 24  # elements of outputs in which the least exact one is searched for a message
NEAR = 32  # elements that share what conditioning adds: few, since that of some may be without limit


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafVerdict:
    """`worst_ratio` is error / allowed error of an element, infinite if none is allowed; `whole_ratio` the same of a
    whole output. `lost` elements, if more than a few, need an explanation by conditioning.
    """

    mismatched: int
    elements: int
    max_abs_error: float
    reference_max_abs_error: float
    worst_ratio: float
    whole_ratio: float | None = None
    lost: int = 0
    message: str = ""
    tolerated: bool = False

    @property
    def passed(self) -> bool:
        return self.tolerated or self.mismatched == 0


EMPTY = LeafVerdict(mismatched=0, elements=0, max_abs_error=0.0, reference_max_abs_error=0.0, worst_ratio=0.0)


def compare_leaf(
    leaf: TruthLeaf,
    candidate: Tensor,
    tolerance: Tolerance,
    *,
    truth_is_reference: bool,
    exact: bool = False,
    by_peak: bool = False,
    may_copy: bool = True,
    terms: Terms | None = None,
) -> LeafVerdict:
    """Requires equal shapes and dtypes. `may_copy` is False if the reference computes this output."""
    dtype = leaf.reference.dtype
    if not leaf.is_calm or not candidate.numel():
        return replace(EMPTY, elements=candidate.numel())
    if dtype.is_complex:
        leaf = replace(leaf, reference=torch.view_as_real(leaf.reference), exact=torch.view_as_real(leaf.exact))
        candidate, dtype = torch.view_as_real(candidate), leaf.reference.dtype
    has_steps = leaf.has_steps and not (dtype.is_floating_point and tolerance.is_fixed)
    if has_steps or (exact and is_countable(leaf)):
        return _tolerate(_compare_exact(leaf, candidate), tolerance)
    terms = None if tolerance.is_fixed or dtype not in RATED else terms
    scale = _measure_reference(leaf, 1.0 if truth_is_reference else LEAF_MEAN_SHARE, by_peak)
    scale = replace(scale, copies=may_copy and leaf.copies_values)
    verdict = _compare_elements(leaf, candidate, tolerance, scale, terms, by_peak=by_peak)
    if terms is None or not terms.are_usual:
        return verdict
    ratio = _rate_whole(leaf, candidate, scale, terms, tolerance)
    verdict = replace(verdict, whole_ratio=ratio)
    return _refuse_whole(verdict, leaf, ratio) if verdict.passed and ratio > 1.0 else verdict


def is_countable(leaf: TruthLeaf) -> bool:
    """True if T is integral, R equals it, and its dtype represents all such integers: sums of zeros and ones are then
    exact in any order and format.
    """
    limit = 2 / torch.finfo(leaf.reference.dtype).eps
    return all(
        bool(((exact == exact.round()) & (exact.abs() <= limit) & (own == exact)).all())
        for _, (exact, own) in _chunks(leaf.device, leaf.exact, leaf.reference)
    )


def _compare_exact(leaf: TruthLeaf, candidate: Tensor) -> LeafVerdict:
    device, dtype = leaf.device, leaf.reference.dtype
    is_small_float = dtype.is_floating_point and dtype.itemsize == 1
    mismatched, at, error, steps = 0, None, 0.0, 0.0 if is_small_float else math.inf
    masks: list[tuple[int, Tensor]] = []
    for first, parts in cut_slices(candidate, leaf.reference, leaf.exact, *leaf.spreads, elements=CHUNK[device.type]):
        found, own, exact, *spread = (_make_comparable(part.to(device)) for part in parts)
        wrong = (found != own) & (found != exact)
        for one in spread:
            wrong &= (found.double() - exact.double()).abs_() > one
        count = int(wrong.count_nonzero())
        if count:
            at = first + int(wrong.to(torch.uint8).argmax()) if at is None else at
            error = max(error, float((found.double() - own.double()).abs_().max()))
            if is_small_float:
                steps = max(steps, float(_count_steps(found, exact, dtype)[wrong].max()))
            mismatched += count
            if candidate.numel() <= MOST_ELEMENTS:
                masks.append((first, wrong))
    is_tolerated = 0 < mismatched <= FEW_WRONG * candidate.numel() and steps <= 1
    return LeafVerdict(
        mismatched=mismatched,
        elements=candidate.numel(),
        max_abs_error=error,
        reference_max_abs_error=0.0,
        worst_ratio=steps if mismatched else 0.0,
        message="" if at is None or is_tolerated else _describe_worst(leaf, candidate, at, mismatched, masks),
        tolerated=is_tolerated,
    )


def _make_comparable(values: Tensor) -> Tensor:
    """torch does not compare floats of 8 bits, and NaN with nothing."""
    if not values.is_floating_point():
        return values
    return widen_small(values).nan_to_num(nan=NO_NUMBER, posinf=math.inf, neginf=-math.inf)


def _count_steps(found: Tensor, exact: Tensor, dtype: torch.dtype) -> Tensor:
    """Return distances of 8-bit values in steps, or a little less; infinite if one is."""
    limits = torch.finfo(dtype)
    size = exact.double().abs().clamp(min=limits.tiny) * limits.eps
    return ((found.double() - exact.double()).abs_() / size).nan_to_num_(math.inf)


def _rate_whole(leaf: TruthLeaf, candidate: Tensor, scale: _Scale, terms: Terms, tolerance: Tolerance) -> float:
    products = torch.zeros((4, 4), dtype=torch.float64, device=leaf.device)
    spread = () if leaf.spread is None else (leaf.spread,)
    tensors = (leaf.exact, leaf.reference, candidate, *spread)
    for first, (exact, own, found, *known) in _chunks(leaf.device, *tensors):
        size = scale.magnitude_of(exact, first, *known).clamp_(min=SMALLEST)
        errors = ((one - exact).nan_to_num_(0.0, 0.0, 0.0) / size for one in (found, own))
        products += multiply_rows(*errors, scale.zero(exact) / size, torch.ones_like(size))
    return rate_whole(products.tolist(), candidate.numel(), leaf.reference.dtype, terms, tolerance)


def _refuse_whole(verdict: LeafVerdict, leaf: TruthLeaf, ratio: float) -> LeafVerdict:
    message = (
        f"{leaf.name}: each element is within its tolerance, but the errors of all {verdict.elements} together are "
        f"{ratio:.3g} times what sums of this length explain in {str(leaf.reference.dtype).removeprefix('torch.')}"
    )
    return replace(verdict, mismatched=verdict.elements, tolerated=False, message=message)


def _compare_elements(
    leaf: TruthLeaf, candidate: Tensor, tolerance: Tolerance, scale: _Scale, terms: Terms | None, *, by_peak: bool
) -> LeafVerdict:
    floor = choose_floor(leaf.reference.dtype, tolerance, terms, copies=scale.copies)
    reaches = () if leaf.reach is None or tolerance.is_fixed else (leaf.reach,)
    usual, step = find_floor(leaf.reference.dtype, None).rtol, CHUNK[leaf.device.type]
    roundings, largest = (0, 1.0) if terms is None else count_roundings(terms)
    rounding = roundings * torch.finfo(leaf.reference.dtype).eps
    rows = torch.empty((-(-candidate.numel() // step), 5), dtype=torch.float64, device=leaf.device)
    masks: list[tuple[int, Tensor]] = []
    tensors = (leaf.exact, leaf.reference, candidate, *reaches, *leaf.spreads)
    for first, (exact, own, found, *sizes) in _chunks(leaf.device, *tensors):
        rounded = exact.to(leaf.reference.dtype).double()
        magnitude = scale.magnitude_of(exact, first, *sizes[len(reaches) :])
        envelope = (scale.largest_relative_error * magnitude).clamp_(max=scale.largest_error)
        size = scale.zero(exact).abs() if scale.copies else magnitude
        allowed = torch.maximum(envelope.mul_(tolerance.factor * ROUNDING_SLACK), floor.atol + floor.rtol * size)
        explained = scale.explain_lost(first, rounding, largest, *(usual * one for one in sizes))
        error = (found - exact).abs_()
        ratio = error / allowed.clamp_(min=SMALLEST)
        if not _are_finite(rounded, own, found):
            error = torch.where(rounded.isfinite(), error, 0.0)
            ratio = _rate_special(rounded, own, found, error / allowed)
        worst, at = ratio.reshape(-1).max(dim=0)
        wrong = ratio > 1.0
        failed = wrong.count_nonzero().double()
        if candidate.numel() <= MOST_ELEMENTS and bool(worst > 1.0):
            masks.append((first, wrong.reshape(-1)))
        lost = (
            failed.new_zeros(())
            if by_peak
            else _count_lost(rounded, own, found, torch.finfo(leaf.reference.dtype).tiny, explained).double()
        )
        torch.stack([worst, (at + first).double(), failed, error.max(), lost], out=rows[first // step])
    own_error, measured = float(scale.largest_error), rows.tolist()
    all_lost, by_chance = sum(row[4] for row in measured), count_lost_by_chance(candidate.numel())
    most_lost = by_chance if reaches else count_lost(candidate.numel(), terms)
    verdict = _read_verdict(
        leaf,
        candidate,
        measured,
        masks,
        reference_error=own_error,
        tolerance=tolerance,
        lost=int(all_lost),
        most_lost=most_lost,
    )
    return replace(verdict, lost=int(all_lost) if all_lost > by_chance else 0)


def _tolerate(verdict: LeafVerdict, tolerance: Tolerance) -> LeafVerdict:
    most = _count_tolerated(verdict.elements, tolerance)
    if not 0 < verdict.mismatched <= most:
        return verdict
    return replace(verdict, tolerated=True, worst_ratio=verdict.mismatched / most, message="")


def _are_outliers(leaf: TruthLeaf, mismatched: int, worst: float, tolerance: Tolerance) -> bool:
    applies = tolerance.is_fixed or leaf.is_16_bit
    return applies and worst <= OUTLIER_LIMIT and mismatched <= OUTLIER_SHARE * leaf.exact.numel()


def _count_tolerated(elements: int, tolerance: Tolerance) -> float:
    return (1.0 - tolerance.matched) * elements * ROUNDING_SLACK


def _are_finite(*tensors: Tensor) -> bool:
    """Test sums, in one pass; an overflow also gives False."""
    return bool(torch.stack([tensor.sum() for tensor in tensors]).isfinite().all())


def _count_lost(rounded: Tensor, own: Tensor, found: Tensor, least: float, explained: Tensor) -> Tensor:
    """Subnormals may be flushed to zero; NaN and infinity compare false."""
    size = rounded.abs()
    error = (found - rounded).abs_()
    missed = (error > size / 2) & (error > explained)
    if not bool(missed.any()):
        return missed.count_nonzero()
    return missed.logical_and_(size >= least).logical_and_((own - rounded).abs_() <= size / 16).count_nonzero()


def _rate_special(rounded: Tensor, own: Tensor, found: Tensor, ratio: Tensor) -> Tensor:
    """Rate NaN and infinity 0 if expected, else infinite."""
    same = (found == rounded) | (found.isnan() & rounded.isnan())
    ratio = torch.where(rounded.isfinite(), ratio.nan_to_num(nan=math.inf, posinf=math.inf), math.inf)
    # The reference may overflow in an intermediate where the truth does not; candidates may, too.
    overflowed = own.isinf() & (found == own)
    return torch.where((same & ~rounded.isfinite()) | overflowed, 0.0, ratio)


@dataclass(frozen=True, slots=True)
class _Scale:
    block_magnitudes: Tensor
    has_special: bool
    largest_error: Tensor
    largest_relative_error: Tensor
    copies: bool = False

    def explain_lost(self, first: int, rounding: float, largest: float, *by_conditioning: Tensor) -> Tensor:
        """`rounding` is that of values near 1, if the chunk's are as large, and of those up to `largest`."""
        around = self.block_magnitudes[first // BLOCK :, None][: CHUNK[self.block_magnitudes.device.type] // BLOCK]
        return reduce(torch.maximum, by_conditioning, rounding * around.clamp(max=largest))

    def zero(self, exact: Tensor) -> Tensor:
        return exact.nan_to_num(0.0, 0.0, 0.0) if self.has_special else exact

    def magnitude_of(self, exact: Tensor, first: int, *spread: Tensor) -> Tensor:
        """Return M for a chunk of shape (blocks, BLOCK) from element `first`."""
        around = self.block_magnitudes[first // BLOCK :, None][: exact.shape[0]]
        magnitude = torch.maximum(self.zero(exact).abs(), around)
        for one in spread:
            near = one.view(len(one), -1, NEAR).mean(-1).repeat_interleave(NEAR, dim=1)
            magnitude = torch.maximum(magnitude, torch.maximum(one, near))
        return magnitude


def _measure_reference(leaf: TruthLeaf, leaf_mean_share: float, by_peak: bool) -> _Scale:
    none = torch.zeros((), dtype=torch.float64, device=leaf.device)
    fills = find_fills(leaf.exact, leaf.device)
    magnitudes = _block_magnitudes(leaf, leaf_mean_share, fills)
    if by_peak:
        peaks = [fills.zero(chunk).abs().max() for _, (chunk,) in _chunks(leaf.device, leaf.exact)]
        magnitudes = magnitudes.clamp(min=torch.stack(peaks).max())
    scale = _Scale(magnitudes, fills.has_special, none, none)
    largest, relative = none, none
    for first, (exact, own, *spread) in _chunks(leaf.device, leaf.exact, leaf.reference, *leaf.spreads):
        error = (own - exact).abs_().nan_to_num_(0.0, 0.0, 0.0)  # also where the reference alone is special
        largest = torch.maximum(largest, error.max())
        size = scale.magnitude_of(exact, first, *spread).clamp_(min=SMALLEST)
        relative = torch.maximum(relative, (error / size).max())
    return replace(scale, largest_error=largest, largest_relative_error=relative)


def _block_magnitudes(leaf: TruthLeaf, leaf_mean_share: float, fills: Fills) -> Tensor:
    """Square the means of roots, to which few large values add little."""
    exact = leaf.exact
    roots = torch.empty(-(-exact.numel() // BLOCK), dtype=torch.float64, device=leaf.device)
    for first, (chunk,) in _chunks(leaf.device, exact):
        torch.sum(fills.zero(chunk).abs().sqrt_(), dim=1, out=roots[first // BLOCK : first // BLOCK + len(chunk)])
    sizes = torch.full_like(roots, BLOCK)
    short = exact.numel() % BLOCK
    if short:
        sizes[-1] = short
    if short and len(roots) > 1:  # a short last block is merged with the one before it
        roots[-1] += roots[-2]
        sizes[-1] += BLOCK
    return (roots / sizes).square_().clamp_(min=fills.size / exact.numel() * leaf_mean_share)


def _chunks(device: torch.device, *tensors: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """Yield (first element, zero-padded float64 chunks of shape (blocks, BLOCK))."""
    step = CHUNK[device.type]
    for first, parts in cut_slices(*tensors, elements=step):
        yield first, tuple(to_blocks(part.to(device).double()) for part in parts)


def to_blocks(values: Tensor) -> Tensor:
    missing = -values.numel() % BLOCK
    return (torch.nn.functional.pad(values, (0, missing)) if missing else values).view(-1, BLOCK)


def choose_floor(dtype: torch.dtype, tolerance: Tolerance, terms: Terms | None, *, copies: bool) -> Floor:
    default = find_floor(dtype, terms)
    if copies:
        default = replace(default, rtol=COPIED_EPS * torch.finfo(dtype).eps)
    return Floor(
        atol=default.atol if tolerance.atol is None else tolerance.atol,
        rtol=default.rtol if tolerance.rtol is None else tolerance.rtol,
    )


def _read_verdict(
    leaf: TruthLeaf,
    candidate: Tensor,
    rows: list[list[float]],
    masks: Masks,
    *,
    reference_error: float,
    tolerance: Tolerance,
    lost: int,
    most_lost: float,
) -> LeafVerdict:
    """Each chunk's `rows` begin with worst ratio, its index, failed elements, largest error."""
    worst, at = max(rows, key=lambda row: row[0])[:2]
    mismatched = int(sum(row[2] for row in rows))
    most = _count_tolerated(candidate.numel(), tolerance)
    if mismatched <= most and lost > max(most_lost, most):
        largest = max(row[3] for row in rows), reference_error
        return _refuse_lost(leaf, candidate, lost, most_lost, largest)
    errors = [row[3] for row in rows]
    verdict = LeafVerdict(
        mismatched=mismatched,
        elements=candidate.numel(),
        max_abs_error=math.nan if any(map(math.isnan, errors)) else max(errors),
        reference_max_abs_error=reference_error,
        worst_ratio=worst,
        message=_describe_worst(leaf, candidate, int(at), mismatched, masks) if mismatched else "",
    )
    if _are_outliers(leaf, mismatched, worst, tolerance):
        return replace(verdict, tolerated=True, message="")
    return _tolerate(verdict, tolerance) if math.isfinite(verdict.max_abs_error) else verdict


def _refuse_lost(
    leaf: TruthLeaf, candidate: Tensor, lost: int, most_lost: float, errors: tuple[float, float]
) -> LeafVerdict:
    share = f"{lost} of {candidate.numel()} elements"
    wrong = "are wrong by more than half of the true value, where the reference is close"
    message = f"{leaf.name}: {share} {wrong}; allowed: {int(most_lost)}"
    if candidate.numel() <= MOST_SEARCHED:
        exact, own, found = (one.double() for one in (leaf.exact, leaf.reference, candidate))
        shares = torch.where((own - exact).abs() < exact.abs() / 2, (found - exact).abs() / exact.abs(), 0.0)
        message += f"; {_describe_element(leaf, candidate, int(shares.nan_to_num_().argmax()))}"
    return LeafVerdict(
        mismatched=lost,
        elements=candidate.numel(),
        max_abs_error=errors[0],
        reference_max_abs_error=errors[1],
        worst_ratio=lost / max(most_lost, 1.0),
        message=message,
    )


def _describe_worst(leaf: TruthLeaf, candidate: Tensor, at: int, mismatched: int, masks: Masks) -> str:
    share = f"{mismatched} of {candidate.numel()} elements wrong"
    where = describe_wrong(_join_masks(masks, leaf)) if candidate.numel() <= MOST_ELEMENTS else ""
    wrong = f"; wrong: {where}" if where else ""
    return f"{leaf.name}: {share}; {_describe_element(leaf, candidate, at)}{wrong}"


def _describe_element(leaf: TruthLeaf, candidate: Tensor, at: int) -> str:
    index = unravel(at, leaf.exact.shape)
    expected, found = leaf.exact[tuple(index)].item(), candidate[tuple(index)].item()
    return f"at {index} expected {expected:.9g}, found {found:.9g}"


def _join_masks(masks: Masks, leaf: TruthLeaf) -> Tensor:
    whole = torch.zeros(leaf.exact.numel(), dtype=torch.bool, device=leaf.device)
    for first, wrong in masks:
        whole[first : first + wrong.numel()] = wrong[: whole.numel() - first]
    return whole.view(leaf.exact.shape)
