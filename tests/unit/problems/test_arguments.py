"""What get_inputs and get_init_inputs may return."""

import pytest

from harness.domain import ProblemError
from harness.problems.arguments import read_arguments


def two(channels, gain=2.0, bias=True):
    return channels, gain, bias


def none():
    return ()


def by_name_only(*, channels):
    return channels


@pytest.mark.parametrize(
    ("value", "taker", "arguments"),
    [
        ([4], two, (4,)),
        ((4, 3.0), two, (4, 3.0)),
        ([], none, ()),
        ([[], {}], none, ()),
        ([[4], {}], two, (4,)),
        ([[], {"channels": 4, "gain": 3.0}], two, (4, 3.0)),
        (([4], {"gain": 3.0}), two, (4, 3.0)),
        ([[4], {"bias": False}], two, (4, 2.0, False)),
        ([[4, 5], {"rate": 3.0}], two, ([4, 5], {"rate": 3.0})),  # a list and a dict
        ([[[4]], {}], lambda x: x, ([4],)),
        ({"gain": 3.0, "channels": 4}, two, (4, 3.0)),
        ({}, none, ()),
    ],
)
def test_arguments_by_position_and_by_name_become_positional(value, taker, arguments):
    assert read_arguments(value, "get_init_inputs()", taker, "Model") == arguments


@pytest.mark.parametrize(
    ("value", "taker", "advice"),
    [
        ([[], {"width": 4}], none, "by name, as a dict or as [[positional], {named}], but Model takes no (width=...)"),
        ({"width": 4}, two, "name its parameters, or return a list of all arguments ([value] passes a dict)"),
        ({"channels": 4}, by_name_only, "takes no (channels=...)"),
        ((one for one in [[4]]), two, "found generator; return the arguments of one call, and write other shapes as"),
        (None, none, "found NoneType; write [] without arguments"),
        (4, two, "found int; write [value]"),
    ],
)
def test_unfitting_arguments_are_an_error_with_advice(value, taker, advice):
    with pytest.raises(ProblemError) as raised:
        read_arguments(value, "get_init_inputs()", taker, "Model")
    assert advice in str(raised.value)
