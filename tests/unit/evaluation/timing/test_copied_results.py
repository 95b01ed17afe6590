"""Whether the parts of a result lie in memory as far from each other as in the output."""

import random

import pytest
import torch

from harness.evaluation.timing.replayed_kernels import hold_all, take_patterns

RESULT = torch.randn(5000)


def as_bytes(tensor):
    return tensor.contiguous().view(-1).view(torch.uint8)


@pytest.mark.parametrize(
    ("left", "is_there"),
    [
        (RESULT, True),
        (RESULT.clone().fill_(3.0), False),
        (RESULT * 2.0, False),
        (RESULT.flip(0), False),
        (RESULT.view(50, 100).t().reshape(-1), False),
        (torch.cat([RESULT[:2500], torch.zeros(2500)]), False),
        (RESULT[:100], False),
    ],
)
def test_a_result_is_found_in_memory_as_a_whole(left, is_there):
    patterns = take_patterns([as_bytes(RESULT)], random.Random(4))
    memory = [as_bytes(torch.randn(300)), as_bytes(torch.cat([torch.randn(77), left, torch.randn(9)]))]
    assert hold_all(memory, patterns) is is_there


def test_each_of_several_outputs_must_be_there():
    patterns = take_patterns([as_bytes(RESULT), as_bytes(RESULT + 1.0)], random.Random(4))
    assert not hold_all([as_bytes(RESULT)], patterns)
    assert hold_all([as_bytes(RESULT), as_bytes(RESULT + 1.0)], patterns)


@pytest.mark.parametrize("output", [torch.zeros(5000), torch.randn(5000) > 0, torch.ones(3)])
def test_outputs_with_few_different_words_tell_nothing(output):
    assert not hold_all([as_bytes(output)], take_patterns([as_bytes(output)], random.Random(4)))
