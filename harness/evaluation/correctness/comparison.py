"""Compares outputs with the truth: structure, shape and dtype exactly, values within a tolerance.

With T the float64 truth, R the reference in its own dtype and C the candidate, every element must satisfy

    |C - T| <= max(factor * E, atol + rtol * M)

M, the local magnitude: the larger of |T| and the mean |T| of `BLOCK` neighbours, since sums that cancel have errors of
the size of their terms; at least a small share of the output's mean |T|, for regions of zeros.

E: the smaller of two bounds of R's error, its largest error and its largest error relative to M, so that no single
element of R sets the limit.

Values may span orders of magnitude: an element is lost if C misses T by more than half where R is close; more than
`LOST_SHARE` lost elements fail. (Sums that cancel lose a few.)

`FLOORS` are several times the error of a float32 sum of 10,000 terms in the worst order, and several times below one
rounding to the next smaller dtype. Integers, booleans and counts (`is_countable`) are exact. Where T in the output's
dtype is infinite or NaN, C must be the same; other NaNs fail. Strides are free.

`by_peak`, for inputs of which nearly all are zero: M is at least `PEAK_SHARE` of the largest |T|, and no element is
lost, since programs with other sums (Strassen, FFT) have errors of that size everywhere.

With `matched` below 1 a share of the elements of each output may be wrong, but none of them infinite or NaN.
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
from harness.evaluation.correctness.wrong_elements import MOST_ELEMENTS, describe_wrong
from harness.sandbox.tensors.outputs import FlatOutputs, cut_slices

BLOCK = 1024
# Elements converted to float64 at a time. On a CPU few enough to stay in the cache and in one thread: waking threads
# for some thirty small operations costs more than it saves. On a GPU enough to fill it.
CHUNK = {"cpu": BLOCK * 32, "cuda": BLOCK * 8192}
LEAF_MEAN_SHARE = 1 / 1024
LOST_SHARE = 0.05
PEAK_SHARE = 1 / 16
SURE_FACTOR = 2.0
Masks = Sequence[tuple[int, Tensor]]  # the first element of a slice, and which of its elements are wrong
ITEM_BYTES = 4  # smaller floats are widened to this size
ROUNDING_SLACK = 1 + 1e-12  # so that the reference passes its own limit
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Floor:
    """Allowed in any case: `atol + rtol * magnitude`."""

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
    """`worst_ratio`: error / allowed error; infinite where none is allowed."""

    mismatched: int
    elements: int
    max_abs_error: float
    reference_max_abs_error: float
    worst_ratio: float
    message: str = ""
    tolerated: bool = False

    @property
    def passed(self) -> bool:
        return self.tolerated or self.mismatched == 0


def compare_outputs(
    truth: Truth,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    distribution: str,
    *,
    exact: bool = False,
    by_peak: bool = False,
) -> tuple[Outcome | None, Trial]:
    """(None, passed trial) or (outcome, failed trial). `exact`: no error where the truth is countable; needs a
    float64 truth and default tolerances. Outputs and truth may be on different devices."""
    refusal = _compare_form(truth, outputs)
    if refusal is not None:
        outcome, message = refusal
        return outcome, Trial(distribution=distribution, passed=False, message=message)
    exact = exact and truth.kind == "float64" and not tolerance.is_fixed
    return _compare_leaves(truth, truth.leaves, outputs.tensors, tolerance, distribution, exact=exact, by_peak=by_peak)


def are_surely_close(own: FlatOutputs, outputs: FlatOutputs, tolerance: Tolerance) -> bool:
    """Fast sufficient test for `compare_outputs` against the reference's outputs `own`. False: unknown."""
    if outputs.tree != own.tree or tolerance.atol is not None or tolerance.rtol is not None:
        return False
    return tolerance.factor >= SURE_FACTOR and all(map(_is_surely_close, own.tensors, outputs.tensors))


def _is_surely_close(own: Tensor, found: Tensor) -> bool:
    """If R is within half a floor of T, a fifth of a floor from R is within a floor of T. Otherwise that fifth is
    below R's own error, and the limit is at least `SURE_FACTOR` times that."""
    if (found.dtype, found.shape, found.device) != (own.dtype, own.shape, own.device):
        return False
    floor = FLOORS.get(own.dtype)
    if floor is None or own.numel() == 0 or not _is_finite(own):
        return torch.equal(found, own)
    share, least = floor.rtol / 5, _mean_size(own) * (LEAF_MEAN_SHARE / 2)
    close, lost = [], []  # on the device: one transfer at the end
    for _, parts in cut_slices(own, found, elements=CHUNK[own.device.type]):
        ours, theirs = map(_widen_small, parts)
        size, error = ours.abs(), (theirs - ours).abs_()
        close.append((error <= (size + least).mul_(share)).all())
        # Elements so small that this error changes them entirely are counted separately.
        lost.append((error > size / 4).count_nonzero())
    return bool(torch.stack(close).all()) and int(torch.stack(lost).sum()) <= LOST_SHARE / 2 * own.numel()


def _mean_size(tensor: Tensor) -> Tensor:
    parts = cut_slices(tensor, elements=CHUNK[tensor.device.type])
    return torch.stack([_widen_small(part).abs().sum() for _, (part,) in parts]).sum() / tensor.numel()


def _widen_small(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.element_size() < ITEM_BYTES else tensor


def _compare_leaves(
    truth: Truth,
    leaves: Sequence[TruthLeaf],
    found: Sequence[Tensor],
    tolerance: Tolerance,
    distribution: str,
    *,
    exact: bool = False,
    by_peak: bool = False,
) -> tuple[Outcome | None, Trial]:
    is_reference = truth.kind == "reference"
    verdicts = [
        compare_leaf(leaf, tensor, tolerance, truth_is_reference=is_reference, exact=exact, by_peak=by_peak)
        for leaf, tensor in zip(leaves, found, strict=True)
    ]
    trial = _summarise(verdicts, distribution)
    return (None if trial.passed else Outcome.WRONG_VALUE), trial


def compare_leaf(
    leaf: TruthLeaf,
    candidate: Tensor,
    tolerance: Tolerance,
    *,
    truth_is_reference: bool,
    exact: bool = False,
    by_peak: bool = False,
) -> LeafVerdict:
    """Shapes and dtypes are equal."""
    dtype = leaf.reference.dtype
    if dtype.is_complex:
        parts = replace(leaf, reference=torch.view_as_real(leaf.reference), exact=torch.view_as_real(leaf.exact))
        candidate = torch.view_as_real(candidate)
        return compare_leaf(
            parts, candidate, tolerance, truth_is_reference=truth_is_reference, exact=exact, by_peak=by_peak
        )
    if not dtype.is_floating_point or (exact and is_countable(leaf)):
        return _tolerate(_compare_exact(leaf, candidate), tolerance)
    return _compare_floating(leaf, candidate, tolerance, 1.0 if truth_is_reference else LEAF_MEAN_SHARE, by_peak)


def is_countable(leaf: TruthLeaf) -> bool:
    """Whether T is integral, R equals it, and its dtype represents all such integers: sums of zeros and ones are
    then exact in any order and format."""
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
    """For instance `tuple of (tensor, tensor)`."""
    ((kind, value),) = tree.items()
    if kind == "t":
        return "tensor"
    if kind == "v":
        return repr(value)
    items = [f"{item[0]}: {describe_tree(item[1])}" if kind == "dict" else describe_tree(item) for item in value]
    return f"{kind} of ({', '.join(items)})"


def _compare_exact(leaf: TruthLeaf, candidate: Tensor) -> LeafVerdict:
    """Equal to the reference in its own dtype or in float64."""
    device = leaf.device
    mismatched, at, error = 0, None, 0.0
    masks: list[tuple[int, Tensor]] = []
    for first, parts in cut_slices(candidate, leaf.reference, leaf.exact, elements=CHUNK[device.type]):
        found, own, exact = (part.to(device) for part in parts)
        wrong = (found != own) & (found != exact)
        count = int(wrong.count_nonzero())
        if count:
            at = first + int(wrong.to(torch.uint8).argmax()) if at is None else at
            error = max(error, float((found.double() - own.double()).abs_().max()))
            mismatched += count
            if candidate.numel() <= MOST_ELEMENTS:
                masks.append((first, wrong))
    return LeafVerdict(
        mismatched=mismatched,
        elements=candidate.numel(),
        max_abs_error=error,
        reference_max_abs_error=0.0,
        worst_ratio=math.inf if mismatched else 0.0,
        message="" if at is None else _describe_worst(leaf, candidate, at, mismatched, masks),
    )


def _compare_floating(
    leaf: TruthLeaf, candidate: Tensor, tolerance: Tolerance, leaf_mean_share: float, by_peak: bool
) -> LeafVerdict:
    if candidate.numel() == 0:
        return LeafVerdict(mismatched=0, elements=0, max_abs_error=0.0, reference_max_abs_error=0.0, worst_ratio=0.0)
    scale = _measure_reference(leaf, leaf_mean_share, by_peak)
    floor = _choose_floor(leaf.reference.dtype, tolerance)
    rows, masks = [], list[tuple[int, Tensor]]()
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
        wrong = ratio > 1.0
        failed = wrong.count_nonzero().double()
        if bool(worst > 1.0) and candidate.numel() <= MOST_ELEMENTS:
            masks.append((first, wrong.reshape(-1)))
        lost = (
            failed.new_zeros(())
            if by_peak
            else _count_lost(rounded, own, found, torch.finfo(leaf.reference.dtype).tiny).double()
        )
        rows.append(torch.stack([worst, (at + first).double(), failed, error.max(), lost]))
    own_error, measured = float(scale.largest_error), torch.stack(rows).tolist()
    return _read_verdict(leaf, candidate, measured, masks, reference_error=own_error, tolerance=tolerance)


def _tolerate(verdict: LeafVerdict, tolerance: Tolerance) -> LeafVerdict:
    most = _count_tolerated(verdict.elements, tolerance)
    if not 0 < verdict.mismatched <= most:
        return verdict
    return replace(verdict, tolerated=True, worst_ratio=verdict.mismatched / most, message="")


def _count_tolerated(elements: int, tolerance: Tolerance) -> float:
    return (1.0 - tolerance.matched) * elements * ROUNDING_SLACK


def _count_lost(rounded: Tensor, own: Tensor, found: Tensor, least: float) -> Tensor:
    """Subnormals may be flushed to zero; NaN and infinity compare false."""
    size = rounded.abs()
    missed = (found - rounded).abs_() > size / 2
    if not bool(missed.any()):
        return missed.count_nonzero()
    return missed.logical_and_(size >= least).logical_and_((own - rounded).abs_() <= size / 16).count_nonzero()


def _is_finite(values: Tensor) -> bool:
    """By the sum, in one pass; an overflow is False too."""
    return bool(values.sum().isfinite())


def _rate_special(rounded: Tensor, own: Tensor, found: Tensor, ratio: Tensor) -> Tensor:
    """NaN and infinity get 0 where expected, else infinity."""
    same = (found == rounded) | (found.isnan() & rounded.isnan())
    ratio = torch.where(rounded.isfinite(), ratio.nan_to_num(nan=math.inf, posinf=math.inf), math.inf)
    # The reference may overflow in an intermediate where the truth does not; candidates may, too.
    overflowed = own.isinf() & (found == own)
    return torch.where((same & ~rounded.isfinite()) | overflowed, 0.0, ratio)


@dataclass(frozen=True, slots=True)
class _Scale:
    block_magnitudes: Tensor
    largest_error: Tensor
    largest_relative_error: Tensor

    def magnitude_of(self, exact: Tensor, first: int) -> Tensor:
        """M for a chunk of shape (blocks, BLOCK) from element `first`."""
        block = first // BLOCK
        around = self.block_magnitudes[block : block + exact.shape[0], None]
        return torch.maximum(_zero_special(exact).abs(), around)


def _measure_reference(leaf: TruthLeaf, leaf_mean_share: float, by_peak: bool) -> _Scale:
    none = torch.zeros((), dtype=torch.float64, device=leaf.device)
    magnitudes = _block_magnitudes(leaf, leaf_mean_share)
    if by_peak:
        peaks = [_zero_special(chunk).abs().max() for _, (chunk,) in _chunks(leaf.device, leaf.exact)]
        magnitudes = magnitudes.clamp(min=torch.stack(peaks).max() * PEAK_SHARE)
    scale = _Scale(magnitudes, none, none)
    largest, relative = none, none
    for first, (exact, own) in _chunks(leaf.device, leaf.exact, leaf.reference):
        error = (own - exact).abs_()
        if not _is_finite(error):
            error = torch.where(exact.isfinite() & own.isfinite(), error, 0.0)
        largest = torch.maximum(largest, error.max())
        relative = torch.maximum(relative, (error / scale.magnitude_of(exact, first).clamp_(min=SMALLEST)).max())
    return _Scale(scale.block_magnitudes, largest, relative)


def _block_magnitudes(leaf: TruthLeaf, leaf_mean_share: float) -> Tensor:
    exact = leaf.exact
    sums = torch.empty(-(-exact.numel() // BLOCK), dtype=torch.float64, device=leaf.device)
    for first, (chunk,) in _chunks(leaf.device, exact):
        torch.sum(_zero_special(chunk).abs(), dim=1, out=sums[first // BLOCK : first // BLOCK + len(chunk)])
    least = sums.sum() / exact.numel() * leaf_mean_share
    sizes = torch.full_like(sums, BLOCK)
    short = exact.numel() % BLOCK
    if short:
        sizes[-1] = short
    if short and len(sums) > 1:  # a short last block is merged with the one before it
        sums[-1] += sums[-2]
        sizes[-1] += BLOCK
    return torch.maximum(sums / sizes, least)


def _chunks(device: torch.device, *tensors: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """(first element, float64 chunks of shape (blocks, BLOCK)), zero-padded."""
    step = CHUNK[device.type]
    for first, parts in cut_slices(*tensors, elements=step):
        yield first, tuple(_to_blocks(part.to(device).double()) for part in parts)


def _to_blocks(values: Tensor) -> Tensor:
    missing = -values.numel() % BLOCK
    return (torch.nn.functional.pad(values, (0, missing)) if missing else values).view(-1, BLOCK)


def _zero_special(values: Tensor) -> Tensor:
    return values if _is_finite(values) else values.nan_to_num(0.0, 0.0, 0.0)


def _choose_floor(dtype: torch.dtype, tolerance: Tolerance) -> Floor:
    default = FLOORS.get(dtype) or Floor(torch.finfo(dtype).tiny, 4 * torch.finfo(dtype).eps)
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
) -> LeafVerdict:
    """`rows` per chunk: worst ratio, its index, failed elements, largest error, lost elements."""
    worst, at = max(rows, key=lambda row: row[0])[:2]
    mismatched, lost = (int(sum(row[column] for row in rows)) for column in (2, 4))
    most = _count_tolerated(candidate.numel(), tolerance)
    if mismatched <= most and lost > max(LOST_SHARE * candidate.numel(), most):
        return _refuse_lost(leaf, candidate, lost, max(row[3] for row in rows), reference_error)
    errors = [row[3] for row in rows]
    verdict = LeafVerdict(
        mismatched=mismatched,
        elements=candidate.numel(),
        max_abs_error=math.nan if any(map(math.isnan, errors)) else max(errors),
        reference_max_abs_error=reference_error,
        worst_ratio=worst,
        message=_describe_worst(leaf, candidate, int(at), mismatched, masks) if mismatched else "",
    )
    return _tolerate(verdict, tolerance) if math.isfinite(verdict.max_abs_error) else verdict


def _refuse_lost(
    leaf: TruthLeaf, candidate: Tensor, lost: int, largest_error: float, reference_error: float
) -> LeafVerdict:
    share = f"{lost} of {candidate.numel()} elements"
    message = f"{leaf.name}: {share} are wrong by more than half of the true value, where the reference is close"
    return LeafVerdict(
        mismatched=lost,
        elements=candidate.numel(),
        max_abs_error=largest_error,
        reference_max_abs_error=reference_error,
        worst_ratio=math.inf,
        message=message,
    )


def _describe_worst(leaf: TruthLeaf, candidate: Tensor, at: int, mismatched: int, masks: Masks) -> str:
    index = _unravel(at, leaf.exact.shape)
    expected, found = leaf.exact[tuple(index)].item(), candidate[tuple(index)].item()
    share = f"{mismatched} of {candidate.numel()} elements wrong"
    where = describe_wrong(_join_masks(masks, leaf)) if candidate.numel() <= MOST_ELEMENTS else ""
    wrong = f"; wrong: {where}" if where else ""
    return f"{leaf.name}: {share}; at {index} expected {expected:.9g}, found {found:.9g}{wrong}"


def _join_masks(masks: Masks, leaf: TruthLeaf) -> Tensor:
    """The last slice may be padded."""
    whole = torch.zeros(leaf.exact.numel(), dtype=torch.bool, device=leaf.device)
    for first, wrong in masks:
        whole[first : first + wrong.numel()] = wrong[: whole.numel() - first]
    return whole.view(leaf.exact.shape)


def _unravel(at: int, shape: Sequence[int]) -> list[int]:
    """torch.unravel_index imports sympy, which takes 0.5 s."""
    index = []
    for size in reversed(shape):
        at, part = divmod(at, size)
        index.append(part)
    return index[::-1]


def _summarise(verdicts: list[LeafVerdict], distribution: str) -> Trial:
    mismatched = sum(verdict.mismatched for verdict in verdicts)
    return Trial(
        distribution=distribution,
        passed=all(verdict.passed for verdict in verdicts),
        max_abs_error=_largest([verdict.max_abs_error for verdict in verdicts]),
        reference_max_abs_error=_largest([verdict.reference_max_abs_error for verdict in verdicts]),
        worst_ratio=_largest([verdict.worst_ratio for verdict in verdicts]),
        mismatched=mismatched,
        elements=sum(verdict.elements for verdict in verdicts),
        message="; ".join(verdict.message for verdict in verdicts if verdict.message),
    )


def _largest(numbers: list[float]) -> float | None:
    """None where a number is infinite or NaN."""
    return max(numbers) if all(map(math.isfinite, numbers)) else None
