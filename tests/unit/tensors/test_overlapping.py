"""Which tensors share elements, and not only memory, with others."""

import pytest
import torch

from harness.sandbox.worker_client import describe
from harness.tensors.overlaps import find_overlapping, share_much

BASE = torch.arange(24.0).view(4, 6)


@pytest.mark.parametrize(
    ("tensors", "found"),
    [
        (BASE.chunk(2), set()),
        (BASE.chunk(2, dim=1), set()),
        ((BASE[0], torch.ones(6), BASE[0]), {0, 2}),
        ((BASE, BASE.t(), BASE.clone()), {0, 1}),
        ((BASE[:2], BASE[1:3], BASE[3]), {0, 1}),
        ((BASE[0].expand(3, 6), BASE[1]), set()),
        ((BASE.view(torch.int16)[:1, 1:2], BASE[0, :1]), {0, 1}),
        ((BASE[:0], BASE), set()),
    ],
)
def test_tensors_overlap_if_they_have_common_elements(tensors, found):
    assert find_overlapping([one.data_ptr() for one in tensors], list(map(describe, tensors))) == found


@pytest.mark.parametrize(
    ("tensors", "is_much"),
    [
        ((BASE, BASE), True),
        ((BASE, BASE[:2]), True),
        ((BASE, BASE[:1, :1]), False),
        ((BASE, BASE[-1:, ::6], BASE.clone()), False),
        (BASE.chunk(2), False),
    ],
)
def test_a_small_view_of_another_output_saves_little_memory(tensors, is_much):
    assert share_much([one.data_ptr() for one in tensors], list(map(describe, tensors))) == is_much
