"""Compares the outputs of a call with the truth: structure, shape and dtype exactly, values within a tolerance
(`harness.evaluation.correctness.allowed_errors`). Strides are free, and a list may be a tuple."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor

from harness.domain import Outcome, Tolerance, Trial
from harness.evaluation.correctness.allowed_errors import (
    FLOORS,
    LEAF_MEAN_SHARE,
    RATED,
    count_lost,
    count_lost_by_chance,
    explain_errors,
)
from harness.evaluation.correctness.leaf_comparison import CHUNK, LeafVerdict, choose_floor, compare_leaf, to_blocks
from harness.evaluation.correctness.truth import Truth
from harness.problems.operators import Terms
from harness.protocol import have_same_nesting
from harness.tensors.fill_values import Fills, find_fills
from harness.tensors.outputs import FlatOutputs, widen_small
from harness.tensors.single_pass import find_kernels
from harness.tensors.values import cut_slices

SURE_FACTOR, SURE_RTOL = 2.0, 0.1
MOST_SIZE = torch.finfo(torch.float32).max  # of all values together, so that no sum of some overflows
SURE_CHUNK = {"cpu": CHUNK["cpu"], "cuda": 4 * CHUNK["cuda"]}  # in float32: as `CHUNK`, with fewer temporaries


def compare_outputs(
    truth: Truth,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    distribution: str,
    *,
    exact: bool = False,
    by_peak: bool = False,
    copied: Collection[int] | None = None,
    terms: Terms | None = None,
) -> tuple[Outcome | None, Trial]:
    """Return (None, passed trial) or (outcome, failed trial). With `exact`, countable truths allow no error; this needs
    a float64 truth and default tolerances. Only outputs that are `copied` in all calls (None: unknown) are compared as
    copies. `terms` narrow the tolerance. Outputs and truth may be on different devices.
    """
    refusal = _compare_form(truth, outputs)
    if refusal is not None:
        outcome, message = refusal
        return outcome, Trial(distribution=distribution, passed=False, message=message)
    exact = exact and truth.kind != "reference" and not tolerance.is_fixed
    verdicts = list(compare_leaves(truth, outputs, tolerance, exact=exact, by_peak=by_peak, copied=copied, terms=terms))
    trial = _summarise(verdicts, distribution)
    return (None if trial.passed else Outcome.WRONG_VALUE), trial


def compare_leaves(
    truth: Truth,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    *,
    exact: bool = False,
    by_peak: bool = False,
    copied: Collection[int] | None = None,
    terms: Terms | None = None,
) -> Iterator[LeafVerdict]:
    for at, (leaf, tensor) in enumerate(zip(truth.leaves, outputs.tensors, strict=True)):
        yield compare_leaf(
            leaf,
            tensor,
            tolerance,
            truth_is_reference=truth.kind == "reference",
            exact=exact,
            by_peak=by_peak,
            may_copy=copied is None or at in copied,
            terms=terms,
        )


def _compare_form(truth: Truth, outputs: FlatOutputs) -> tuple[Outcome, str] | None:
    if len(outputs.tensors) != len(truth.leaves) or not have_same_nesting(outputs.tree, truth.tree):
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
    """Return a text such as `tuple of (tensor, tensor)`."""
    ((kind, value),) = tree.items()
    if kind == "t":
        return "tensor"
    if kind == "v":
        return repr(value)
    items = [f"{item[0]}: {describe_tree(item[1])}" if kind == "dict" else describe_tree(item) for item in value]
    return f"{kind} of ({', '.join(items)})"


def _summarise(verdicts: list[LeafVerdict], distribution: str) -> Trial:
    mismatched = sum(verdict.mismatched for verdict in verdicts)
    return Trial(
        distribution=distribution,
        passed=all(verdict.passed for verdict in verdicts),
        max_abs_error=_largest([verdict.max_abs_error for verdict in verdicts]),
        reference_max_abs_error=_largest([verdict.reference_max_abs_error for verdict in verdicts]),
        worst_ratio=_largest([verdict.worst_ratio for verdict in verdicts]),
        whole_ratio=max((verdict.whole_ratio for verdict in verdicts if verdict.whole_ratio is not None), default=None),
        mismatched=mismatched,
        elements=sum(verdict.elements for verdict in verdicts),
        lost=sum(verdict.lost for verdict in verdicts),
        message="; ".join(verdict.message for verdict in verdicts if verdict.message),
    )


def _largest(numbers: list[float]) -> float | None:
    return max(numbers) if all(map(math.isfinite, numbers)) else None


def can_be_surely_close(tolerance: Tolerance) -> bool:
    """Return False if `are_surely_close` is always False. With a stated relative error of a tenth or more, the
    reference's outputs and their magnitudes are too far from the truth's.
    """
    return tolerance.factor >= SURE_FACTOR and (tolerance.rtol or 0.0) < SURE_RTOL


def are_surely_close(
    own: FlatOutputs,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    copied: Collection[int] | None = None,
    terms: Terms | None = None,
    *,
    keeps_all: bool = False,
) -> bool:
    """A fast sufficient test for `compare_outputs` against the reference's outputs `own`, of which it `copied` some.
    With `keeps_all`, lost elements need an explanation. False means unknown.
    """
    if not can_be_surely_close(tolerance) or not have_same_nesting(outputs.tree, own.tree):
        return False
    pairs = enumerate(zip(own.tensors, outputs.tensors, strict=True))
    return all(
        _is_surely_close(*pair, tolerance, terms, copies=at in (copied or ()), keeps_all=keeps_all)
        for at, pair in pairs
    )


def _is_surely_close(
    own: Tensor, found: Tensor, tolerance: Tolerance, terms: Terms | None, *, copies: bool, keeps_all: bool
) -> bool:
    """If R is within half a floor of T, a fifth of a floor from R is within a floor of T: magnitudes of R and T differ
    by at most a factor of two. Otherwise that fifth is below R's own error, and the limit is at least `SURE_FACTOR`
    times that. So it is with whole outputs.
    """
    if (found.dtype, found.shape, found.device) != (own.dtype, own.shape, own.device):
        return False
    if own.dtype not in FLOORS or own.numel() == 0:
        return torch.equal(found, own)
    fills = find_fills(own)
    if fills.has_special or not fills.size < MOST_SIZE:
        return torch.equal(found, own)
    terms = None if tolerance.is_fixed or own.dtype not in RATED else terms
    is_rated = terms is not None and terms.are_usual
    floor = choose_floor(own.dtype, tolerance, terms, copies=copies)
    least = (floor.atol + (0.0 if copies else fills.size / own.numel() * LEAF_MEAN_SHARE / 2 * floor.rtol)) / 5
    failed, lost, squares = _measure_errors(own, found, floor.rtol / 5, least, fills, alone=copies, rates=is_rated)
    most_lost = count_lost_by_chance(own.numel()) if keeps_all else count_lost(own.numel(), terms)
    is_close = not failed and lost <= most_lost / 2
    limit = explain_errors(own.dtype, terms)[0] / 2 if terms is not None and is_rated else math.inf
    return is_close and squares <= limit**2 * own.numel()


def _measure_errors(
    own: Tensor, found: Tensor, share: float, least: float, fills: Fills, *, alone: bool, rates: bool = True
) -> tuple[int, int, float]:
    """Return how many errors exceed `share` of the magnitude plus `least`, how many a quarter of their value, as of
    elements near zero, and with `rates` the sum of the squared errors relative to the magnitude, which is the larger of
    the value and the squared mean of its neighbours' roots; only that sum takes it so if values count `alone`.
    """
    if fills.is_empty and own.dtype != torch.float64 and (kernels := find_kernels(own, found)):
        failed, lost, squares = kernels.measure_errors(own, found, share, least, alone=alone)
        return failed, lost, squares
    counts = torch.zeros(2, dtype=torch.int64, device=own.device)  # on the device: one transfer at the end
    squared = torch.zeros((), dtype=torch.float64, device=own.device)
    for _, parts in cut_slices(own, found, elements=SURE_CHUNK[own.device.type]):
        ours, theirs = (to_blocks(widen_small(part)) for part in parts)
        size, error = ours.abs(), (theirs - ours).abs_()
        usual = size if fills.is_empty else fills.zero(ours).abs()
        around = usual.sqrt().mean(dim=1, keepdim=True).square_()
        counts[1] += (error > size / 4).count_nonzero()
        magnitude = size if alone else torch.maximum(size, around)
        counts[0] += error.numel() - (error <= magnitude * share + least).count_nonzero()
        if rates:
            relative_to = torch.maximum(usual, around).clamp_(min=torch.finfo(size.dtype).tiny)
            squared += (error / relative_to).square_().sum(dtype=torch.float64)
    failed, lost = counts.tolist()
    return failed, lost, float(squared)
