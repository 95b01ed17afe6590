"""What a call may return."""

import numpy
import pytest
import torch

from harness.domain import Outcome
from harness.sandbox.exchange import explain_failure
from harness.worker.memory import WrongOutputs, flatten_outputs, require_dense

ONE = torch.ones(2)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (numpy.ones(2), "output 0: expected a tensor, found numpy.ndarray"),
        ((ONE, [ONE, numpy.ones(2)]), "output 2: expected a tensor, found numpy.ndarray"),
        ({"b": object(), "a": ONE}, "output 1: expected a tensor, found object"),
        ([1.5, 1j], "output 0: expected a tensor, found complex"),
        (ONE.to_sparse(), "output 0: expected a dense tensor, found a tensor of layout sparse_coo"),
        ((ONE, ONE.to("meta")), "output 1: expected a dense tensor, found a tensor on the meta device"),
    ],
)
def test_an_output_that_is_no_dense_tensor_is_named(result, message):
    with pytest.raises(WrongOutputs, match=message):
        require_dense(flatten_outputs(result)[1])


def test_a_nested_tensor_is_named():
    nested = torch.nested.nested_tensor([ONE], layout=torch.jagged)
    with pytest.raises(WrongOutputs, match="output 1: expected a dense tensor, found a nested tensor"):
        require_dense([ONE, nested])


def test_a_value_within_itself_is_refused():
    result = []
    result.append(result)
    with pytest.raises(WrongOutputs, match="output 0: a value is nested deeper than"):
        flatten_outputs(result)


def test_wrong_outputs_are_an_outcome_of_their_own():
    failure = explain_failure({"wrong_outputs": True, "message": "output 0: no"}, Outcome.RUNTIME_ERROR)
    assert (failure.outcome, failure.message) == (Outcome.WRONG_SHAPE, "output 0: no")
