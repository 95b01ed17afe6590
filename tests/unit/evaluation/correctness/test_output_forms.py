"""Outputs are wrong in another form: shape, dtype or structure."""

from __future__ import annotations

import math

import pytest
import torch
from truths import DEFAULT, evaluate, exact_truth, outcome_of

from harness.domain import Outcome
from harness.evaluation.correctness.comparison import are_surely_close
from harness.evaluation.correctness.truth import Truth, TruthLeaf, trust_outputs
from harness.tensors.outputs import flatten_outputs


@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 3, 1), (1, 2, 3), (2, 1), ()])
def test_another_shape_is_wrong_even_if_it_broadcasts(shape):
    truth = exact_truth(torch.ones(2, 3))
    outcome, trial = evaluate(truth, torch.ones(shape))
    assert outcome is Outcome.WRONG_SHAPE
    assert trial.message == f"output: expected shape (2, 3), found {shape}"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.bool])
def test_another_dtype_is_wrong_even_if_values_are_equal(dtype):
    outcome, trial = evaluate(exact_truth(torch.ones(4)), torch.ones(4).to(dtype))
    assert outcome is Outcome.WRONG_DTYPE
    assert trial.message == f"output: expected torch.float32, found {dtype}"


@pytest.mark.parametrize(
    "found",
    [(torch.ones(2),), [torch.ones(2)], torch.ones(2), (), {"a": torch.ones(2)}, (torch.ones(2), None)],
)
def test_another_structure_is_wrong(found):
    right = flatten_outputs((torch.ones(2), torch.ones(3)))
    leaves = tuple(TruthLeaf(name="o", reference=tensor, exact=tensor.double()) for tensor in right.tensors)
    truth = Truth(kind="float64", tree=right.tree, leaves=leaves)
    outcome, trial = evaluate(truth, found)
    assert outcome is Outcome.WRONG_SHAPE
    assert trial.message.startswith("expected tuple of (tensor, tensor), found ")


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ((torch.ones(2), torch.ones(3)), [torch.ones(2), torch.ones(3)]),
        ([torch.ones(2), torch.ones(3)], (torch.ones(2), torch.ones(3))),
        ({"a": [torch.ones(2), (None, 3)]}, {"a": (torch.ones(2), [None, 3])}),
        ([torch.ones(2), torch.zeros(2, dtype=torch.int64)], torch.ones(2, 3).max(dim=1)),
    ],
    ids=["tuple", "list", "nested", "named tuple"],
)
def test_a_list_may_be_a_tuple_and_the_reverse(expected, found):
    right = flatten_outputs(expected)
    assert are_surely_close(right, flatten_outputs(found), DEFAULT)
    assert outcome_of(trust_outputs(right), found) is None


def test_every_output_counts():
    right = flatten_outputs((torch.ones(2000), torch.ones(3)))
    leaves = tuple(TruthLeaf(name=f"o{n}", reference=t, exact=t.double()) for n, t in enumerate(right.tensors))
    truth = Truth(kind="float64", tree=right.tree, leaves=leaves)
    assert evaluate(truth, (torch.ones(2000), torch.ones(3)))[1].elements == 2003
    outcome, trial = evaluate(truth, (torch.ones(2000), torch.zeros(3)))
    assert outcome is Outcome.WRONG_VALUE
    assert trial.mismatched == 3
    assert trial.message.startswith("o1: 3 of 3 elements wrong")


def test_strides_do_not_decide():
    values = torch.rand(2, 3, 8, 8)
    assert outcome_of(exact_truth(values), values.to(memory_format=torch.channels_last)) is None
    wrong = values.to(memory_format=torch.channels_last).clone()
    wrong[1, 2, 3, 4] += 1
    assert "at [1, 2, 3, 4]" in evaluate(exact_truth(values), wrong)[1].message


def test_empty_outputs_pass():
    assert outcome_of(exact_truth(torch.ones(0, 3)), torch.ones(0, 3)) is None


def test_nothing_is_surely_close_that_has_another_form():
    own = flatten_outputs(torch.ones(4))
    for other in (torch.ones(2, 2), torch.ones(4, dtype=torch.float64), (torch.ones(4),), torch.full((4,), math.nan)):
        assert not are_surely_close(own, flatten_outputs(other), DEFAULT)
