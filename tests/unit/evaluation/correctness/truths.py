"""Truths to compare outputs with."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.domain import Outcome, Tolerance
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.truth import Truth, TruthLeaf
from harness.tensors.outputs import flatten_outputs

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
DEFAULT = Tolerance()


def make_truth(exact: Tensor, reference: Tensor, kind: str = "float64") -> Truth:
    leaf = TruthLeaf(name="output", reference=reference, exact=exact)
    return Truth(kind=kind, tree={"t": 0}, leaves=(leaf,))


def exact_truth(values: Tensor, kind: str = "float64") -> Truth:
    """A truth whose reference is exact: only the floor counts."""
    return make_truth(values if not values.is_floating_point() else values.double(), values, kind)


def evaluate(truth: Truth, candidate: object, tolerance: Tolerance = DEFAULT):
    return compare_outputs(truth, flatten_outputs(candidate), tolerance, "as_given")


def outcome_of(truth: Truth, candidate: object, tolerance: Tolerance = DEFAULT) -> Outcome | None:
    return evaluate(truth, candidate, tolerance)[0]
