"""Equality to the last bit, and the words for what differs."""

from __future__ import annotations

import math

import pytest
import torch

from harness.judge.difference import find_difference, has_same_bits

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [([NAN, 1.0], [NAN, 1.0], True), ([0.0], [-0.0], False), ([1.0], [1.0000001], False), ([], [], True)],
)
def test_bits_decide_not_values(a, b, same):
    assert has_same_bits(torch.tensor(a), torch.tensor(b)) is same


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.complex64])
def test_the_difference_counts_elements_over_all_tensors(dtype):
    one, other = torch.ones(2, 3, dtype=dtype), torch.ones(4, dtype=dtype)
    changed = one.clone()
    changed[1, 2] = 0
    difference = find_difference([changed, other], [one, other.clone()])
    assert (difference.differing, difference.elements, difference.largest) == (1, 10, 1.0)
    assert str(difference) == "1 of 10 elements differ, by up to 1"


def test_equal_tensors_have_no_difference():
    values = torch.randn(5).t()
    assert find_difference([values], [values.clone()]) is None
    assert find_difference([], []) is None


@pytest.mark.parametrize(("now", "before"), [(NAN, 1.0), (1.0, INF), (INF, -INF)])
def test_a_difference_that_is_no_number_is_infinite(now, before):
    assert find_difference([torch.tensor([now])], [torch.tensor([before])]).largest == INF


def test_strides_make_no_difference():
    values = torch.randn(4, 5)
    assert find_difference([values.t().contiguous().t()], [values]) is None


def test_a_scalar_has_one_element():
    assert find_difference([torch.tensor(2.0)], [torch.tensor(1.0)]).differing == 1
