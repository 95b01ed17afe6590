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
    COPIED_EPS,
    FLOORS,
    LEAF_MEAN_SHARE,
    LOST_SHARE,
    RATED,
    explain_errors,
    find_floor,
)
from harness.evaluation.correctness.leaf_comparison import CHUNK, LeafVerdict, compare_leaf, to_blocks
from harness.evaluation.correctness.truth import Truth
from harness.problems.operators import Terms
from harness.protocol import have_same_nesting
from harness.tensors.fill_values import Fills, find_fills
from harness.tensors.outputs import FlatOutputs, widen_small
from harness.tensors.single_pass import find_kernels
from harness.tensors.slices import cut_slices

SURE_FACTOR = 2.0
SURE_CHUNK = {"cpu": CHUNK["cpu"], "cuda": 4 * CHUNK["cuda"]}  # in float32: as `CHUNK`, with fewer temporaries


def compare_outputs(
    truth: Truth,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    distribution: str,
    *,
    exact: bool = False,
    by_peak: bool = False,
    terms: Terms | None = None,
) -> tuple[Outcome | None, Trial]:
    """Return (None, passed trial) or (outcome, failed trial). With `exact`, countable truths allow no error; this needs
    a float64 truth and default tolerances. `terms` narrow the tolerance. Outputs and truth may be on different devices.
    """
    refusal = _compare_form(truth, outputs)
    if refusal is not None:
        outcome, message = refusal
        return outcome, Trial(distribution=distribution, passed=False, message=message)
    exact = exact and truth.kind != "reference" and not tolerance.is_fixed
    verdicts = list(compare_leaves(truth, outputs, tolerance, exact=exact, by_peak=by_peak, terms=terms))
    trial = _summarise(verdicts, distribution)
    return (None if trial.passed else Outcome.WRONG_VALUE), trial


def compare_leaves(
    truth: Truth,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    *,
    exact: bool = False,
    by_peak: bool = False,
    terms: Terms | None = None,
) -> Iterator[LeafVerdict]:
    for leaf, tensor in zip(truth.leaves, outputs.tensors, strict=True):
        is_own = truth.kind == "reference"
        yield compare_leaf(
            leaf, tensor, tolerance, truth_is_reference=is_own, exact=exact, by_peak=by_peak, terms=terms
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
        message="; ".join(verdict.message for verdict in verdicts if verdict.message),
    )


def _largest(numbers: list[float]) -> float | None:
    return max(numbers) if all(map(math.isfinite, numbers)) else None


def are_surely_close(
    own: FlatOutputs,
    outputs: FlatOutputs,
    tolerance: Tolerance,
    copied: Collection[int] | None = None,
    terms: Terms | None = None,
) -> bool:
    """A fast sufficient test for `compare_outputs` against the reference's outputs `own`, of which it `copied` some.
    False means unknown.
    """
    if tolerance.atol is not None or tolerance.rtol is not None or not have_same_nesting(outputs.tree, own.tree):
        return False
    pairs = enumerate(zip(own.tensors, outputs.tensors, strict=True))
    return tolerance.factor >= SURE_FACTOR and all(
        _is_surely_close(*pair, terms, copies=at in (copied or ())) for at, pair in pairs
    )


def _is_surely_close(own: Tensor, found: Tensor, terms: Terms | None, *, copies: bool) -> bool:
    """If R is within half a floor of T, a fifth of a floor from R is within a floor of T. Otherwise that fifth is below
    R's own error, and the limit is at least `SURE_FACTOR` times that. So it is with whole outputs.
    """
    if (found.dtype, found.shape, found.device) != (own.dtype, own.shape, own.device):
        return False
    if own.dtype not in FLOORS or own.numel() == 0:
        return torch.equal(found, own)
    floor, fills = find_floor(own.dtype, terms), find_fills(own)
    share = (COPIED_EPS * torch.finfo(own.dtype).eps if copies else floor.rtol) / 5
    if fills.has_special or not math.isfinite(fills.size):
        return torch.equal(found, own)
    least = fills.size / own.numel() * LEAF_MEAN_SHARE / 2 * share
    failed, lost, squares = _measure_errors(own, found, share, least, fills, rates=terms is not None)
    is_close = not failed and lost <= LOST_SHARE / 2 * own.numel()
    limit = explain_errors(own.dtype, terms)[0] / 2 if terms is not None and own.dtype in RATED else math.inf
    return is_close and squares <= limit**2 * own.numel()


def _measure_errors(
    own: Tensor, found: Tensor, share: float, least: float, fills: Fills, *, rates: bool
) -> tuple[int, int, float]:
    """Return how many errors exceed `share` of their value plus `least`, how many a quarter of it, as of elements near
    zero, and with `rates` the sum of the squared errors relative to their neighbours.
    """
    if fills.is_empty and own.dtype != torch.float64 and (kernels := find_kernels(own, found)):
        failed, lost, squares = kernels.measure_errors(own, found, share, least)
        return failed, lost, squares if rates else 0.0
    counts = torch.zeros(2, dtype=torch.int64, device=own.device)  # on the device: one transfer at the end
    squared = torch.zeros((), dtype=torch.float64, device=own.device)
    for _, parts in cut_slices(own, found, elements=SURE_CHUNK[own.device.type]):
        ours, theirs = map(widen_small, parts)
        size, error = ours.abs(), (theirs - ours).abs_()
        counts[1] += (error > size / 4).count_nonzero()
        if rates:
            squared += _square_relative(error, fills.zero(size))
        counts[0] += error.numel() - (error <= size.mul_(share).add_(least)).count_nonzero()
    failed, lost = counts.tolist()
    return failed, lost, float(squared)


def _square_relative(error: Tensor, size: Tensor) -> Tensor:
    """Return the sum of squared errors relative to the mean of their neighbours, or to the element if it is larger."""
    errors, sizes = to_blocks(error), to_blocks(size)
    sizes = torch.maximum(sizes, sizes.mean(dim=1, keepdim=True)).clamp_(min=torch.finfo(sizes.dtype).tiny)
    return (errors / sizes).square_().sum(dtype=torch.float64)
