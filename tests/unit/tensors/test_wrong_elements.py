"""The description of wrong elements names the set that is wrong."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import Tolerance
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.truth import trust_outputs
from harness.tensors.outputs import FlatOutputs
from harness.tensors.wrong_elements import describe_wrong


def mark(shape, *places):
    wrong = torch.zeros(shape, dtype=torch.bool)
    for place in places:
        wrong[place] = True
    return wrong


ROWS = slice(None)
CASES = {
    "all of them": mark((4, 5), ...),
    "the last 4 of 100 indices in dimension 1": mark((8, 100), (ROWS, slice(96, None))),
    "index 0 of 8 in dimension 0": mark((8, 100), 0),
    "indices 32 to 63 of 100 in dimension 1": mark((8, 100), (ROWS, slice(32, 64))),
    "the last 6 of 8 indices in dimension 0 and the first 10 of 100 indices in dimension 1": mark(
        (8, 100), (slice(2, None), slice(None, 10))
    ),
    "indices of 128 that are 16 to 31 modulo 32 in dimension 1": mark(
        (8, 128), *((ROWS, slice(first + 16, first + 32)) for first in range(0, 128, 32))
    ),
    "indices of 9 that are 1 modulo 2 in dimension 0": mark((9,), slice(1, None, 2)),
    "2 of 33 indices in dimension 0": mark((33, 5), (9, ROWS), (0, ROWS)),
    "the last 150 of 400 indices in dimension 0": mark((400,), slice(250, None)),
    "the first 2 of 4 indices in dimension 0, 62.5% of these elements": mark((4, 4), 0, (1, 3)),
    "": mark((8, 8), (3, 4)),
}


@pytest.mark.parametrize("expected", CASES)
def test_the_set_is_named(expected):
    assert describe_wrong(CASES[expected]) == expected


def test_a_grid_that_ends_early_in_a_later_row():
    flat = torch.zeros(3 * 100, dtype=torch.bool)
    flat[50:] = True
    assert describe_wrong(flat.view(3, 100)) == "from element 50 in row-major order on"


def test_few_elements_without_a_pattern():
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(64, 64, generator=generator) < 0.1
    assert describe_wrong(wrong).startswith("scattered, ")


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.sampled_from([1, 2, 4, 5]))
def test_any_set_is_described_in_a_line(bits, columns):
    bits = bits[: len(bits) // columns * columns]
    text = describe_wrong(torch.tensor(bits, dtype=torch.bool).view(-1, columns))
    assert "\n" not in text
    assert len(text) < 200
    assert (text == "all of them") == (len(bits) > 1 and all(bits))


def test_a_trial_says_which_elements_are_wrong():
    expected = torch.randn(16, 1000)
    found = expected.clone()
    found[:, 992:] = 0
    tree = {"t": 0}
    truth = trust_outputs(FlatOutputs(tree=tree, tensors=(expected,)))
    _, trial = compare_outputs(truth, FlatOutputs(tree=tree, tensors=(found,)), Tolerance(), "as_given")
    assert trial.message.endswith("; wrong: the last 8 of 1000 indices in dimension 1")
    whole = (expected * 1000).long()
    truth = trust_outputs(FlatOutputs(tree=tree, tensors=(whole,)))
    _, trial = compare_outputs(truth, FlatOutputs(tree=tree, tensors=(whole + 1,)), Tolerance(), "as_given")
    assert trial.message.endswith("; wrong: all of them")
