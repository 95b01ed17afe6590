"""Which calls of a module a kernel takes."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from harness.capture.comparison import describe_difference
from harness.capture.runtime import Dispatch, list_arguments, share_state


class Difference(nn.Module):
    def forward(self, x, y, scale=1.0, *, mode="sum"):
        return (x - y) * scale


class Kernel(nn.Module):
    def forward(self, x, y):
        return x - y


X, Y = torch.ones(2, 3), torch.zeros(2, 3)
CALLS = [
    ((X, Y, 2.0), {"mode": "sum"}),
    ((X,), {"y": Y, "scale": 2.0, "mode": "sum"}),
    ((), {"mode": "sum", "y": Y, "x": X, "scale": 2.0}),
    ((Y, X, 2.0), {"mode": "sum"}),
    ((X, X, 2.0), {"mode": "sum"}),
    ((X, Y, 2), {"mode": "sum"}),
    ((X, Y, True), {"mode": "sum"}),
    ((X, Y, 2.0), {}),
    ((X, Y, 2.0), {"mode": None}),
    ((X, Y, torch.tensor(2.0)), {"mode": "sum"}),
    ((X, [Y], 2.0), {"mode": "sum"}),
    ((X.double(), Y, 2.0), {"mode": "sum"}),
    ((torch.ones(3, 3), Y, 2.0), {"mode": "sum"}),
    ((torch.ones(6), Y, 2.0), {"mode": "sum"}),
    ((X.clone().requires_grad_(), Y, 2.0), {"mode": "sum"}),
    ((X, Y.clone().requires_grad_(), 2.0), {"mode": "sum"}),
]


def make_dispatch(*, backward: bool) -> Dispatch:
    arguments = repr((3, {"x": "Tensor float32", "y": "Tensor float32", "scale": "2.0", "mode": "'sum'"}))
    sizes = [[(2, 2), (3, 3)]] * 2
    plan = {
        "problem": "p", "arguments": arguments, "inputs": ["x", "y"], "outputs": "0", "frozen": ["y"],
        "shapes": [sizes], "backward": backward,
    }  # fmt: skip
    return Dispatch(Difference(), Kernel(), plan)


@given(st.lists(st.tuples(st.sampled_from(CALLS), st.booleans()), max_size=12), st.booleans())
def test_a_call_is_taken_whatever_calls_came_before(calls, backward):
    dispatch = make_dispatch(backward=backward)
    for (args, kwargs), has_gradients in calls:
        with nullcontext() if has_gradients else torch.no_grad():
            found, expected = dispatch._select(args, kwargs), make_dispatch(backward=backward)._select(args, kwargs)
        assert (found is None) == (expected is None)
        assert found is None or all(found[name] is value for name, value in expected.items())


def test_only_calls_with_the_verified_constants_and_types_are_taken():
    with torch.no_grad():
        taken = [make_dispatch(backward=False)._select(*call) is not None for call in CALLS]
    assert taken == [True] * 5 + [False] * 9 + [True] * 2


def test_a_gradient_that_was_not_verified_is_left_to_the_module():
    assert [make_dispatch(backward=True)._select(*call) is not None for call in CALLS[-2:]] == [True, False]


def test_values_in_containers_have_names_of_variables():
    given = {"x": [1, {"p-3": 2, 4: (3,)}], "y": 5}
    assert dict(list_arguments(given)) == {"x_0": 1, "x_1_p_3": 2, "x_1_4_0": 3, "y": 5}
    assert [name for name, _ in list_arguments({"x": {"a.b": 1, "a_b": 2}})] == ["x_a_b"] * 2


def test_an_argument_that_is_returned_is_the_one_of_the_call():
    dispatch = make_dispatch(backward=False)
    dispatch.outputs = {"y": [0, None], "rest": ("y", 0)}
    dispatch.names = ["x", "y"]
    with torch.no_grad():
        for _ in range(2):  # the second call skips the checks
            found = dispatch(X, Y, 2.0, mode="sum")
            assert found["rest"][0] is Y
            assert found["y"][0] is found["rest"][1]


class Cell(nn.Module):
    """`factor` is that of the state: kernels with other ones are wrong."""

    def __init__(self, factor=0.5, drift=0.0):
        super().__init__()
        self.factor, self.drift = factor, drift
        self.register_buffer("state", torch.ones(3))

    def forward(self, x):
        self.state.mul_(self.factor).add_(x.mean(0))
        out = x + self.state
        self.state.add_(self.drift)
        return out


@pytest.mark.parametrize(
    ("kernel", "failure"), [(Cell(), ""), (Cell(0.25), "off by"), (Cell(drift=0.1), "buffers are off by")]
)
def test_a_kernel_starts_from_the_state_of_its_module(kernel, failure):
    module, alone = Cell(), Cell()
    arguments = repr((1, {"x": "Tensor float32"}))
    plan = {
        "problem": "p", "arguments": arguments, "inputs": ["x"], "outputs": "0", "frozen": [], "backward": False,
        "shapes": [[[(2, 2), (3, 3)]]],
    }  # fmt: skip
    share_state(module, kernel)
    dispatch = Dispatch(module, kernel, plan)
    dispatch.check = describe_difference
    for _ in range(3):
        torch.testing.assert_close(dispatch(X), alone(X))
        torch.testing.assert_close(module.state, alone.state)
    assert dispatch.used == (1 if failure else 3)
    assert "".join(dispatch.failures).startswith(failure)
    assert bool(dispatch.failures) == bool(failure)
