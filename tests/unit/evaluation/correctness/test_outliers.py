"""Few elements beyond the limit: rounding errors of 16-bit terms are random."""

import pytest
import torch

from harness.domain import Outcome, Tolerance
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.truth import Truth, TruthLeaf
from harness.tensors.outputs import flatten_outputs

ELEMENTS, LIMIT = 1 << 15, 0.05
STATED = Tolerance(rtol=LIMIT)


def compare(error, wrong, dtype, tolerance):
    """The outcome if so many elements of ones are off by `error`."""
    reference = torch.ones(ELEMENTS, dtype=dtype)
    leaf = TruthLeaf(name="output", reference=reference, exact=reference.double())
    found = reference.clone()
    found[torch.randperm(ELEMENTS)[:wrong]] += error
    truth = Truth(kind="float64", tree={"t": 0}, leaves=(leaf,))
    return compare_outputs(truth, flatten_outputs(found), tolerance, "as_given")[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("factor", "wrong", "expected"),
    [(1.5, 3, None), (1.5, 4, Outcome.WRONG_VALUE), (2.5, 1, Outcome.WRONG_VALUE)],
    ids=["few", "too_many", "too_far"],
)
def test_few_elements_may_exceed_a_stated_tolerance_a_little(dtype, factor, wrong, expected):
    assert compare(factor * LIMIT, wrong, dtype, STATED) == expected


@pytest.mark.parametrize(
    ("dtype", "error", "expected"),
    [(torch.bfloat16, 0.025, None), (torch.float16, 0.003, None), (torch.float32, 1.5e-4, Outcome.WRONG_VALUE)],
)
def test_unstated_tolerances_have_outliers_in_16_bit_outputs_only(dtype, error, expected):
    assert compare(error, 1, dtype, Tolerance()) == expected


def test_infinity_is_no_outlier():
    assert compare(float("inf"), 1, torch.bfloat16, STATED) == Outcome.WRONG_VALUE


@pytest.mark.parametrize(("dtype", "expected"), [(torch.bfloat16, None), (torch.float32, Outcome.WRONG_VALUE)])
def test_with_sparse_inputs_16_bit_terms_round_at_the_largest_output(dtype, expected):
    exact = torch.full((ELEMENTS,), 1e-3, dtype=torch.float64)
    exact[7] = 1.0
    leaf = TruthLeaf(name="output", reference=exact.to(dtype), exact=exact.to(dtype).double())
    truth = Truth(kind="float64", tree={"t": 0}, leaves=(leaf,))
    found = leaf.exact + 2.0**-8 * torch.where(leaf.exact < 0.5, 1.0, 0.0)
    assert compare_outputs(truth, flatten_outputs(found.to(dtype)), Tolerance(), "sparse", by_peak=True)[0] == expected
