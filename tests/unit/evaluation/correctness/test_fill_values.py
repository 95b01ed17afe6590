"""Values that a mask fills in do not loosen the tolerance of those beside them."""

from __future__ import annotations

import math

import pytest
import torch
from truths import DEFAULT, FLOATS, exact_truth, make_truth, outcome_of

from harness.domain import Outcome
from harness.evaluation.correctness.allowed_errors import BLOCK
from harness.evaluation.correctness.comparison import are_surely_close, compare_outputs
from harness.evaluation.correctness.leaf_comparison import CHUNK
from harness.tensors.fill_values import find_fills
from harness.tensors.outputs import flatten_outputs

FILLS = {
    "masked": (-1e9,),
    "lowest": (-3.4e38,),
    "both ends": (-1e9, 1e6),
    "beside special values": (-1e9, math.inf, -math.inf),
    "not far": (40.0,),
}


@pytest.mark.parametrize("name", FILLS)
def test_values_that_a_mask_fills_in_hide_no_error_beside_them(name):
    source = torch.Generator().manual_seed(len(name))
    values = torch.randn(3 * BLOCK, generator=source)
    kinds = torch.randint(0, len(FILLS[name]) + 1, values.shape, generator=source)
    for kind, fill in enumerate(FILLS[name], start=1):
        values[kinds == kind] = fill
    is_filled, truth = kinds > 0, make_truth(values.double() * (1 + 1e-9), values)
    close, far = (torch.where(is_filled, values, values * (1 + error)) for error in (3e-5, 4e-3))
    for found, expected in ((values, None), (close, None), (far, Outcome.WRONG_VALUE)):
        assert outcome_of(truth, found) == expected
        if expected is not None:
            assert not are_surely_close(flatten_outputs(values), flatten_outputs(found), DEFAULT)
    assert outcome_of(truth, torch.where(is_filled, values * 1.01, values)) == Outcome.WRONG_VALUE


@pytest.mark.parametrize("values", [[1e9, 1.0, 2.0], [1e9, 1e9, 0.0, 0.0], [math.inf, math.inf, 1.0], [2.0] * 5, []])
def test_single_values_and_those_beside_zeros_are_no_fills(values):
    assert find_fills(torch.tensor(values)).values == ()


@pytest.mark.parametrize("dtype", FLOATS)
def test_fills_are_found_in_each_dtype(dtype):
    values = torch.randn(CHUNK["cpu"] * 9).to(dtype)
    values[::3], values[1::97] = -6e4, 3e3
    assert find_fills(values).values == tuple(torch.tensor([-6e4, 3e3], dtype=dtype).double().tolist())


def test_values_that_a_mask_fills_in_are_no_peak():
    values = torch.zeros(2 * BLOCK)
    values[::3], values[1::9] = -1e9, 1.0
    truth = exact_truth(values)
    wrong = flatten_outputs(torch.where(values == 1.0, 1.5, values))
    assert compare_outputs(truth, wrong, DEFAULT, "sparse", by_peak=True)[0] is Outcome.WRONG_VALUE
    right = flatten_outputs(torch.where(values == 0.0, 1e-6, values))
    assert compare_outputs(truth, right, DEFAULT, "sparse", by_peak=True)[0] is None
