"""Decides whether a candidate's outputs are right: structure, shape and dtype exactly, values within a tolerance.

Every element must pass; there is no allowed share of wrong ones. With T the float64 truth, R the honest reference in
its own dtype and C the candidate, an element passes when

    |C - T| <= max(factor * E, atol + rtol * M)

M, the local magnitude, is |T| of the element itself, or the mean |T| of the `BLOCK` neighbouring elements where that is
larger: a sum that cancels to nearly nothing has an error of the size of its terms. (A small share of the output's mean
|T| counts too, for regions where the truth is zero throughout, as after a ReLU.)

E bounds the reference's own error by two envelopes, of which the smaller counts: its largest error, and its largest
error relative to M. One element where the reference happens to be exact, or happens to be bad, therefore does not set
the measure: neither for elements of another size nor for its neighbours.

Values that span many orders of magnitude need more: what is small beside its neighbours could be anything. An element
is lost that misses the truth by more than half of it where the reference comes near; if more than `LOST_SHARE` of an
output's elements are lost it is wrong. (In honest sums that cancel a few are.)

The floors (`FLOORS`) are several times what a float32 sum of 10,000 terms loses in the worst order, and several times
below what a single rounding to the next smaller dtype costs. Integers and booleans are exact, and so are counts in a
floating output where every order of summation is exact (see `is_countable`). Where the truth, rounded to the output's
dtype, is infinite or NaN, the candidate must be the same; a NaN where it is finite always fails. Strides do not decide:
a channels-last result is a right result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.domain import Outcome, Tolerance, Trial
from harness.evaluation.correctness.truth import Truth, TruthLeaf
from harness.sandbox.tensors.outputs import FlatOutputs, cut_slices

BLOCK = 1024
# Elements taken to float64 at a time. On a CPU so few that torch gives each operation to one thread: they stay in the
# cache, and to wake a thread for each of some thirty operations takes longer than it saves. On a GPU enough to be work.
CHUNK = {"cpu": BLOCK * 32, "cuda": BLOCK * 8192}
LEAF_MEAN_SHARE = 1 / 1024
LOST_SHARE = 0.05
SURE_FACTOR = 2.0
ITEM_BYTES = 4  # smaller floats are compared as floats of this size
ROUNDING_SLACK = 1 + 1e-12  # so that the reference itself is never outside its own envelope
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Floor:
    """What is allowed whatever the reference's own error: `atol + rtol * magnitude`."""

    atol: float
    rtol: float


FLOORS = {
    torch.float64: Floor(2.3e-308, 1e-11),
    torch.float32: Floor(1.2e-38, 1e-4),
    torch.float16: Floor(1.2e-7, 2e-3),
    torch.bfloat16: Floor(1.2e-38, 1.6e-2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafVerdict:
    """The comparison of one output tensor. `worst_ratio` is error / allowed, infinite where nothing is allowed."""

    mismatched: int
    elements: int
    max_abs_error: float
    reference_max_abs_error: float
    worst_ratio: float
    message: str = ""


def compare_outputs(
    truth: Truth, outputs: FlatOutputs, tolerance: Tolerance, distribution: str, *, exact: bool = False
) -> tuple[Outcome | None, Trial]:
    """None and a passed trial, or what is wrong and a failed one. Outputs may lie on another device than the truth.

    `exact` allows no error where the truth is countable; without effect where the tolerance states floors of its own,
    or where there is no float64 truth.
    """
    refusal = _compare_form(truth, outputs)
    if refusal is not None:
        outcome, message = refusal
        return outcome, Trial(distribution=distribution, passed=False, message=message)
    exact = exact and truth.kind == "float64" and tolerance.atol is None and tolerance.rtol is None
    return _compare_leaves(truth, truth.leaves, outputs.tensors, tolerance, distribution, exact=exact)


def are_surely_close(own: FlatOutputs, outputs: FlatOutputs, tolerance: Tolerance) -> bool:
    """Whether `compare_outputs` would pass for sure, `own` being what the reference gives on the same inputs: found
    without computing the truth, or taking anything to float64. False says nothing."""
    if outputs.tree != own.tree or tolerance.atol is not None or tolerance.rtol is not None:
        return False
    return tolerance.factor >= SURE_FACTOR and all(map(_is_surely_close, own.tensors, outputs.tensors))


def _is_surely_close(own: Tensor, found: Tensor) -> bool:
    """How that follows. Where the reference is within half a floor of the truth, what is within a fifth of a floor of
    the reference is within a floor of the truth. Where it is not, that fifth is less than the reference's own error,
    and the envelope is `SURE_FACTOR` times that or more."""
    if (found.dtype, found.shape, found.device) != (own.dtype, own.shape, own.device):
        return False
    floor = FLOORS.get(own.dtype)
    if floor is None or own.numel() == 0 or not _is_finite(own):
        return torch.equal(found, own)
    share, least, lost = floor.rtol / 5, _mean_size(own) * (LEAF_MEAN_SHARE / 2), 0
    for _, parts in cut_slices(own, found, elements=CHUNK[own.device.type]):
        ours, theirs = map(_widen_small, parts)
        size, error = ours.abs(), (theirs - ours).abs_()
        if not bool((error <= (size + least).mul_(share)).all()):
            return False
        # What is so small that even this much makes it another number is counted apart.
        lost += int((error > size / 4).count_nonzero())
    return lost <= LOST_SHARE / 2 * own.numel()


def _mean_size(tensor: Tensor) -> Tensor:
    parts = cut_slices(tensor, elements=CHUNK[tensor.device.type])
    return torch.stack([_widen_small(part).abs().sum() for _, (part,) in parts]).sum() / tensor.numel()


def _widen_small(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.element_size() < ITEM_BYTES else tensor


def compare_state(
    truth: Truth, found: Sequence[Tensor], tolerance: Tolerance, distribution: str
) -> tuple[Outcome | None, Trial]:
    """The same for the module's state after the call: `found` holds the tensors that `truth.state` names, in order."""
    return _compare_leaves(truth, tuple(truth.state.values()), found, tolerance, distribution)


def _compare_leaves(
    truth: Truth,
    leaves: Sequence[TruthLeaf],
    found: Sequence[Tensor],
    tolerance: Tolerance,
    distribution: str,
    *,
    exact: bool = False,
) -> tuple[Outcome | None, Trial]:
    verdicts = [
        compare_leaf(leaf, tensor, tolerance, truth_is_reference=truth.kind == "reference", exact=exact)
        for leaf, tensor in zip(leaves, found, strict=True)
    ]
    trial = _summarise(verdicts, distribution)
    return (None if trial.passed else Outcome.WRONG_VALUE), trial


def compare_leaf(
    leaf: TruthLeaf, candidate: Tensor, tolerance: Tolerance, *, truth_is_reference: bool, exact: bool = False
) -> LeafVerdict:
    """Compares the values of one output; shapes and dtypes are equal already."""
    dtype = leaf.reference.dtype
    if dtype.is_complex:
        parts = replace(leaf, reference=torch.view_as_real(leaf.reference), exact=torch.view_as_real(leaf.exact))
        candidate = torch.view_as_real(candidate)
        return compare_leaf(parts, candidate, tolerance, truth_is_reference=truth_is_reference, exact=exact)
    if not dtype.is_floating_point or (exact and is_countable(leaf)):
        return _compare_exact(leaf, candidate)
    return _compare_floating(leaf, candidate, tolerance, 1.0 if truth_is_reference else LEAF_MEAN_SHARE)


def is_countable(leaf: TruthLeaf) -> bool:
    """Whether a floating output is a count: the truth is whole everywhere, the reference meets it exactly, and no value
    is beyond what its dtype counts without a gap. Sums of zeros and ones are then exact in whatever order, and in
    whatever coarser format the factors were kept."""
    limit = 2 / torch.finfo(leaf.reference.dtype).eps
    return all(
        bool(((exact == exact.round()) & (exact.abs() <= limit) & (own == exact)).all())
        for _, (exact, own) in _chunks(leaf.device, leaf.exact, leaf.reference)
    )


def _compare_form(truth: Truth, outputs: FlatOutputs) -> tuple[Outcome, str] | None:
    if outputs.tree != truth.tree or len(outputs.tensors) != len(truth.leaves):
        message = f"expected {describe_tree(truth.tree)}, found {describe_tree(outputs.tree)}"[:500]
        return Outcome.WRONG_SHAPE, message
    for leaf, tensor in zip(truth.leaves, outputs.tensors, strict=True):
        if tensor.shape != leaf.reference.shape:
            expected, found = tuple(leaf.reference.shape), tuple(tensor.shape)
            return Outcome.WRONG_SHAPE, f"{leaf.name}: expected shape {expected}, found {found}"
    for leaf, tensor in zip(truth.leaves, outputs.tensors, strict=True):
        if tensor.dtype != leaf.reference.dtype:
            return Outcome.WRONG_DTYPE, f"{leaf.name}: expected {leaf.reference.dtype}, found {tensor.dtype}"
    return None


def describe_tree(tree: dict[str, Any]) -> str:
    """The nesting of an output in words: `tuple of (tensor, tensor)`."""
    ((kind, value),) = tree.items()
    if kind == "t":
        return "tensor"
    if kind == "v":
        return repr(value)
    items = [f"{item[0]}: {describe_tree(item[1])}" if kind == "dict" else describe_tree(item) for item in value]
    return f"{kind} of ({', '.join(items)})"


def _compare_exact(leaf: TruthLeaf, candidate: Tensor) -> LeafVerdict:
    """Integers and booleans: equal to what the reference gives, in its own dtype or computed in float64."""
    device = leaf.device
    mismatched, at, error = 0, None, 0.0
    for first, parts in cut_slices(candidate, leaf.reference, leaf.exact, elements=CHUNK[device.type]):
        found, own, exact = (part.to(device) for part in parts)
        wrong = (found != own) & (found != exact)
        count = int(wrong.count_nonzero())
        if count:
            at = first + int(wrong.to(torch.uint8).argmax()) if at is None else at
            error = max(error, float((found.double() - own.double()).abs_().max()))
            mismatched += count
    return LeafVerdict(
        mismatched=mismatched,
        elements=candidate.numel(),
        max_abs_error=error,
        reference_max_abs_error=0.0,
        worst_ratio=math.inf if mismatched else 0.0,
        message="" if at is None else _describe_worst(leaf, candidate, at, mismatched),
    )


def _compare_floating(leaf: TruthLeaf, candidate: Tensor, tolerance: Tolerance, leaf_mean_share: float) -> LeafVerdict:
    if candidate.numel() == 0:
        return LeafVerdict(mismatched=0, elements=0, max_abs_error=0.0, reference_max_abs_error=0.0, worst_ratio=0.0)
    scale = _measure_reference(leaf, leaf_mean_share)
    floor = _choose_floor(leaf.reference.dtype, tolerance)
    rows = []
    for first, (exact, own, found) in _chunks(leaf.device, leaf.exact, leaf.reference, candidate):
        rounded = exact.to(leaf.reference.dtype).double()
        magnitude = scale.magnitude_of(exact, first)
        envelope = (scale.largest_relative_error * magnitude).clamp_(max=scale.largest_error)
        allowed = torch.maximum(envelope.mul_(tolerance.factor * ROUNDING_SLACK), floor.atol + floor.rtol * magnitude)
        error = (found - exact).abs_()
        ratio = error / allowed.clamp_(min=SMALLEST)
        if not (_is_finite(rounded) and _is_finite(own) and _is_finite(found)):
            error = torch.where(rounded.isfinite(), error, 0.0)
            ratio = _rate_special(rounded, own, found, error / allowed)
        worst, at = ratio.reshape(-1).max(dim=0)
        failed = (ratio > 1.0).count_nonzero().double()
        lost = _count_lost(rounded, own, found, torch.finfo(leaf.reference.dtype).tiny).double()
        rows.append(torch.stack([worst, (at + first).double(), failed, error.max(), lost]))
    return _read_verdict(leaf, candidate, torch.stack(rows).tolist(), float(scale.largest_error))


def _count_lost(rounded: Tensor, own: Tensor, found: Tensor, least: float) -> Tensor:
    """Elements whose truth the reference meets and the candidate misses by more than half. What is smaller than a
    normal number may be flushed to zero; comparisons with NaN are false, which leaves that and infinity out."""
    size = rounded.abs()
    missed = (found - rounded).abs_() > size / 2
    if not bool(missed.any()):
        return missed.count_nonzero()
    return missed.logical_and_(size >= least).logical_and_((own - rounded).abs_() <= size / 16).count_nonzero()


def _is_finite(values: Tensor) -> bool:
    """Whether all of them are, in one pass: one that is not makes the sum what it is. (So may a sum that overflows:
    then they are looked at one by one.)"""
    return bool(values.sum().isfinite())


def _rate_special(rounded: Tensor, own: Tensor, found: Tensor, ratio: Tensor) -> Tensor:
    """`ratio`, with NaN and infinity decided: 0 where they are what is expected, infinite where not."""
    same = (found == rounded) | (found.isnan() & rounded.isnan())
    ratio = torch.where(rounded.isfinite(), ratio.nan_to_num(nan=math.inf, posinf=math.inf), math.inf)
    # The reference may overflow on its way where the truth does not: a candidate that does so too is as good.
    overflowed = own.isinf() & (found == own)
    return torch.where((same & ~rounded.isfinite()) | overflowed, 0.0, ratio)


@dataclass(frozen=True, slots=True)
class _Scale:
    """How large an output is around each of its blocks, and how far the reference is from the truth."""

    block_magnitudes: Tensor
    largest_error: Tensor
    largest_relative_error: Tensor

    def magnitude_of(self, exact: Tensor, first: int) -> Tensor:
        """M for a chunk of shape (blocks, BLOCK) that begins at element `first`. Infinity and NaN have none."""
        block = first // BLOCK
        around = self.block_magnitudes[block : block + exact.shape[0], None]
        return torch.maximum(_zero_special(exact).abs(), around)


def _measure_reference(leaf: TruthLeaf, leaf_mean_share: float) -> _Scale:
    none = torch.zeros((), dtype=torch.float64, device=leaf.device)
    scale = _Scale(_block_magnitudes(leaf, leaf_mean_share), none, none)
    largest, relative = none, none
    for first, (exact, own) in _chunks(leaf.device, leaf.exact, leaf.reference):
        error = (own - exact).abs_()
        if not _is_finite(error):
            error = torch.where(exact.isfinite() & own.isfinite(), error, 0.0)
        largest = torch.maximum(largest, error.max())
        relative = torch.maximum(relative, (error / scale.magnitude_of(exact, first).clamp_(min=SMALLEST)).max())
    return _Scale(scale.block_magnitudes, largest, relative)


def _block_magnitudes(leaf: TruthLeaf, leaf_mean_share: float) -> Tensor:
    """The mean |T| of each block, at least a share of the mean over the whole output."""
    exact = leaf.exact
    sums = torch.empty(-(-exact.numel() // BLOCK), dtype=torch.float64, device=leaf.device)
    for first, (chunk,) in _chunks(leaf.device, exact):
        torch.sum(_zero_special(chunk).abs(), dim=1, out=sums[first // BLOCK : first // BLOCK + len(chunk)])
    least = sums.sum() / exact.numel() * leaf_mean_share
    sizes = torch.full_like(sums, BLOCK)
    short = exact.numel() % BLOCK
    if short:
        sizes[-1] = short
    if short and len(sums) > 1:  # too few to tell a magnitude: the last block shares the one before it
        sums[-1] += sums[-2]
        sizes[-1] += BLOCK
    return torch.maximum(sums / sizes, least)


def _chunks(device: torch.device, *tensors: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """The same stretch of each tensor in float64 on `device`, as (blocks, BLOCK), with the index of its first element.

    The last block is filled up with zeros, which always pass.
    """
    step = CHUNK[device.type]
    for first, parts in cut_slices(*tensors, elements=step):
        yield first, tuple(_to_blocks(part.to(device).double()) for part in parts)


def _to_blocks(values: Tensor) -> Tensor:
    missing = -values.numel() % BLOCK
    return (torch.nn.functional.pad(values, (0, missing)) if missing else values).view(-1, BLOCK)


def _zero_special(values: Tensor) -> Tensor:
    """With zeros in the place of infinity and NaN."""
    return values if _is_finite(values) else values.nan_to_num(0.0, 0.0, 0.0)


def _choose_floor(dtype: torch.dtype, tolerance: Tolerance) -> Floor:
    default = FLOORS.get(dtype) or Floor(torch.finfo(dtype).tiny, 4 * torch.finfo(dtype).eps)
    return Floor(
        atol=default.atol if tolerance.atol is None else tolerance.atol,
        rtol=default.rtol if tolerance.rtol is None else tolerance.rtol,
    )


def _read_verdict(leaf: TruthLeaf, candidate: Tensor, rows: list[list[float]], reference_error: float) -> LeafVerdict:
    """`rows` holds per chunk: worst ratio, where it is, number of elements that fail, largest error, number lost."""
    worst, at = max(rows, key=lambda row: row[0])[:2]
    mismatched, lost = (int(sum(row[column] for row in rows)) for column in (2, 4))
    if mismatched == 0 and lost > LOST_SHARE * candidate.numel():
        return _refuse_lost(leaf, candidate, lost, max(row[3] for row in rows), reference_error)
    errors = [row[3] for row in rows]
    return LeafVerdict(
        mismatched=mismatched,
        elements=candidate.numel(),
        max_abs_error=math.nan if any(map(math.isnan, errors)) else max(errors),
        reference_max_abs_error=reference_error,
        worst_ratio=worst,
        message=_describe_worst(leaf, candidate, int(at), mismatched) if mismatched else "",
    )


def _refuse_lost(
    leaf: TruthLeaf, candidate: Tensor, lost: int, largest_error: float, reference_error: float
) -> LeafVerdict:
    message = (
        f"{leaf.name}: {lost} of {candidate.numel()} elements miss more than half of a truth that the reference meets"
    )
    return LeafVerdict(
        mismatched=lost,
        elements=candidate.numel(),
        max_abs_error=largest_error,
        reference_max_abs_error=reference_error,
        worst_ratio=math.inf,
        message=message,
    )


def _describe_worst(leaf: TruthLeaf, candidate: Tensor, at: int, mismatched: int) -> str:
    index = _unravel(at, leaf.exact.shape)
    expected, found = leaf.exact[tuple(index)].item(), candidate[tuple(index)].item()
    share = f"{mismatched} of {candidate.numel()} elements wrong"
    return f"{leaf.name}: {share}; at {index} expected {expected:.9g}, found {found:.9g}"


def _unravel(at: int, shape: Sequence[int]) -> list[int]:
    """The index of the `at`-th element. (torch.unravel_index imports half a second of symbolic mathematics.)"""
    index = []
    for size in reversed(shape):
        at, part = divmod(at, size)
        index.append(part)
    return index[::-1]


def _summarise(verdicts: list[LeafVerdict], distribution: str) -> Trial:
    mismatched = sum(verdict.mismatched for verdict in verdicts)
    return Trial(
        distribution=distribution,
        passed=mismatched == 0,
        max_abs_error=_largest([verdict.max_abs_error for verdict in verdicts]),
        reference_max_abs_error=_largest([verdict.reference_max_abs_error for verdict in verdicts]),
        worst_ratio=_largest([verdict.worst_ratio for verdict in verdicts]),
        mismatched=mismatched,
        elements=sum(verdict.elements for verdict in verdicts),
        message="; ".join(verdict.message for verdict in verdicts if verdict.message),
    )


def _largest(numbers: list[float]) -> float | None:
    """None where a number is infinite or NaN: such a record says no more than that."""
    return max(numbers) if all(map(math.isfinite, numbers)) else None
