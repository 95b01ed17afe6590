import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.memory_probe import SAMPLES, Element, choose_elements, count_differences
from harness.sandbox.worker_client import describe

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def read(tensor, elements):
    """The elements, read from this process's own memory."""
    import ctypes

    return [ctypes.string_at(element.address, element.size_bytes) for element in elements]


@given(shape=shapes, turned=st.booleans(), dtype=st.sampled_from([torch.float32, torch.int64, torch.bfloat16]))
@settings(max_examples=40)
def test_every_element_of_a_tensor_is_found_where_its_strides_say(shape, turned, dtype):
    tensor = torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)
    tensor = tensor.permute(*reversed(range(tensor.dim()))) if turned else tensor
    elements = choose_elements([describe(tensor)], [tensor.data_ptr()], random.Random(1))
    assert count_differences(elements, read(tensor, elements), [tensor.contiguous()]) == 0


def test_elements_that_are_not_there_yet_are_counted():
    done, described = torch.ones(64), torch.zeros(64)
    elements = choose_elements([describe(described)], [described.data_ptr()], random.Random(1))
    assert count_differences(elements, read(described, elements), [done]) == len(elements) > SAMPLES / 2


def test_where_there_is_no_memory_nothing_is_as_it_must_be():
    element = Element(output=0, index=0, address=0, size_bytes=4)
    assert count_differences([element], [None], [torch.zeros(1)]) == 1


def test_an_empty_output_has_no_elements():
    assert choose_elements([describe(torch.empty(0, 3))], [0], random.Random(1)) == []


@pytest.mark.parametrize(
    ("tensor", "shared"),
    [
        (torch.zeros(3, 4), False),
        (torch.zeros(3, 4).t(), False),
        (torch.zeros(6, 8)[::2, ::2], False),
        (torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), False),
        (torch.zeros(1, 4).expand(1, 4), False),
        (torch.zeros(1).expand(1, 1, 1), False),
        (torch.zeros(1, 4).expand(3, 4), True),
        (torch.zeros(12).as_strided((4, 4), (1, 1)), True),
        (torch.zeros(12).as_strided((3, 4), (3, 1)), True),
        (torch.zeros(1, 4).expand(3, 4)[:, :0], False),
    ],
)
def test_elements_that_share_memory_are_told_from_those_that_do_not(tensor, shared):
    assert describe(tensor).shares_memory is shared
