"""Other weights and nearby shapes."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import Problem
from harness.evaluation.correctness.other_states import watch_operators
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.variations import (
    cut_inputs,
    find_nearby,
    list_cuts,
    make_other_weights,
)
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

SOURCE = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        INIT

    def forward(self, *inputs):
        return FORWARD

def get_inputs():
    return INPUTS

def get_init_inputs():
    return []
"""


def prepare(forward, *, init="pass", inputs="[torch.randn(40, 30)]"):
    source = SOURCE.replace("INIT", init).replace("FORWARD", forward).replace("INPUTS", inputs)
    return prepare_reference(load_problem(Problem(name="t", suite="s", source=source), "full"), CpuDevice(), 1, 2)


def find_shapes(forward, inputs, seed=0):
    reference = prepare(forward, inputs=inputs)
    nearby = find_nearby(reference, reference.make_inputs(5), random.Random(seed))
    return None if nearby is None else [tuple(tensor.shape) for tensor in nearby.inputs]


def test_other_weights_are_those_of_another_seed():
    reference = prepare("self.linear(inputs[0])", init="self.linear = nn.Linear(30, 30)")
    other = make_other_weights(reference, 9)
    fresh = reference.loaded.make_model(9, torch.device("cpu"))
    ratios = other.state["linear.weight"] / fresh.linear.weight
    assert 0.74 < float(ratios.min()) < 0.8
    assert 1.2 < float(ratios.max()) < 1.26
    assert not torch.equal(other.state["linear.weight"], reference.state["linear.weight"])


def test_other_weights_change_once_more_in_a_part():
    reference = prepare("inputs[0] @ self.scale", init="self.scale = nn.Parameter(torch.rand(30, 512))")
    whole, partly = (make_other_weights(reference, 9, changes=one).state["scale"] for one in ((), ["parts"]))
    assert 1 <= int((whole != partly).sum()) <= 30 * 512 // 16


def test_one_weight_changes_alone_and_at_times_in_order_only():
    init = "self.a, self.b = (nn.Parameter(torch.rand(30, 64)) for _ in range(2))"
    reference = prepare("inputs[0] @ (self.a + self.b)", init=init)
    exchanged = 0
    for seed in range(20):
        whole, other = (make_other_weights(reference, seed, changes=one).state for one in (["parts"], ["parts", "one"]))
        changed = [name for name in ("a", "b") if not torch.equal(whole[name], other[name])]
        assert len(changed) <= 1
        exchanged += any(
            torch.equal(*(one[name].flatten().sort().values for one in (whole, other))) for name in changed
        )
    assert 4 < exchanged < 16


def test_copies_and_norms_do_not_hold_for_other_weights():
    init = (
        "self.a = nn.Linear(30, 30); self.b = __import__('copy').deepcopy(self.a); "
        "self.c = nn.utils.parametrizations.weight_norm(nn.Linear(30, 30))"
    )
    reference = prepare("self.b(self.a(inputs[0])) + self.c(inputs[0])", init=init)
    assert torch.equal(reference.state["a.weight"], reference.state["b.weight"])
    state = make_other_weights(reference, 9).state
    assert not torch.equal(state["a.weight"], state["b.weight"])
    given, direction = (state[f"c.parametrizations.weight.original{at}"] for at in (0, 1))
    assert float((direction.norm(dim=1, keepdim=True) / given - 1).abs().max()) > 0.05


def test_weights_that_follow_no_seed_are_scaled_a_little():
    reference = prepare("inputs[0] * self.scale", init="self.scale = nn.Parameter(2.0 + 1e-4 * torch.arange(30))")
    scale = make_other_weights(reference, 9).state["scale"]
    assert len(set(scale.tolist())) > 20
    assert 1.5 <= float(scale.min()) <= float(scale.max()) <= 2.5


def test_tensors_that_are_no_weights_stay():
    init = "self.linear = nn.Linear(30, 30); self.first = torch.randn(30)"
    reference = prepare("self.linear(inputs[0]) + self.first", init=init)
    assert torch.equal(make_other_weights(reference, 9).model.first, reference.model.first)


@pytest.mark.parametrize("init", ["pass", 'self.register_buffer("table", torch.arange(5))'])
def test_a_model_without_weights_to_change_has_no_others(init):
    assert make_other_weights(prepare("inputs[0] * 2", init=init), 9) is None


def test_the_truth_for_other_weights_is_computed_with_them():
    reference = prepare("inputs[0] * self.scale", init="self.scale = nn.Parameter(torch.randn(30))")
    other = make_other_weights(reference, 9)
    inputs = reference.make_inputs(3)
    truth = other.truth_of(reference, inputs)
    assert torch.equal(truth.leaves[0].exact, inputs[0].double() * other.state["scale"].double())


@pytest.mark.parametrize(
    ("forward", "inputs", "cut", "kept"),
    [
        ("inputs[0] + inputs[1]", "[torch.randn(40, 30), torch.randn(40, 30)]", [(0, 0), (1, 0)], [(0, 1), (1, 1)]),
        ("inputs[0] @ inputs[1]", "[torch.randn(40, 30), torch.randn(30, 20)]", [(0, 0)], [(0, 1), (1, 0), (1, 1)]),
        ("inputs[0] @ inputs[1]", "[torch.randn(1, 30), torch.randn(30, 1)]", [(0, 1), (1, 0)], [(0, 0), (1, 1)]),
        ("inputs[0].view(10, 4, -1)", "[torch.randn(40, 30)]", [(0, 1)], [(0, 0)]),
        ("inputs[0] @ inputs[1]", "[torch.randn(30, 30), torch.randn(30, 30)]", [(0, 0), (0, 1), (1, 0), (1, 1)], []),
        ("inputs[0] + torch.zeros(30)", "[torch.randn(30, 30)]", [(0, 0)], [(0, 1)]),
    ],
)
def test_inputs_are_cut_where_the_reference_still_runs(forward, inputs, cut, kept):
    given_shapes = [tuple(tensor.shape) for tensor in prepare(forward, inputs=inputs).make_inputs(0)]
    shapes = find_shapes(forward, inputs)
    for tensor, dim in cut:
        assert (given_shapes[tensor][dim] - shapes[tensor][dim]) % 2 == 1
    for tensor, dim in kept:
        assert shapes[tensor][dim] == given_shapes[tensor][dim]


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("inputs[0].reshape(40, 30)", "[torch.randn(40, 30)]"),
        ("inputs[0] * 2", "[torch.randn(1, 1)]"),
        ("inputs[0] * 2", "[torch.randn(())]"),
        ("1 / (inputs[0].shape == (40, 30)) + inputs[0]", "[torch.randn(40, 30)]"),
    ],
)
def test_where_the_reference_takes_no_other_shape_there_is_none(forward, inputs):
    assert find_shapes(forward, inputs) is None


def test_any_dimension_but_the_last_one_is_cut():
    shapes = [
        find_shapes("inputs[0] + inputs[1]", "[torch.randn(4, 9, 3), torch.randn(9, 1)]", seed) for seed in range(9)
    ]
    assert {tuple(cut == size for cut, size in zip(one[0], (4, 9, 3), strict=True)) for one in shapes} == {
        (True, False, True),
        (False, True, True),
    }
    assert all(one[1] == (one[0][1], 1) for one in shapes)


def test_a_size_is_cut_in_tensors_of_fewer_dimensions_too():
    cuts = [next(list_cuts([(1, 9, 3), (9,)], random.Random(seed))) for seed in range(9)]
    assert {frozenset(cut) for cut in cuts} == {frozenset([(0, 1), (1, 0)])}


def test_the_cut_is_secret():
    shapes = {find_shapes("inputs[0] * 2", "[torch.randn(40, 30)]", seed)[0][0] for seed in range(8)}
    assert len(shapes) > 1


def test_outputs_of_the_nearby_shape_lie_where_the_usual_ones_do():
    reference = prepare("inputs[0] * 2")
    nearby = find_nearby(reference, reference.make_inputs(5), random.Random(0))
    assert nearby.footprint.output == reference.footprint.output
    assert nearby.footprint.output_specs[0].shape == tuple(nearby.expected.truth.leaves[0].reference.shape)
    assert nearby.footprint.output_specs[0].offset == reference.footprint.output.offset


def test_outputs_that_would_not_fit_are_not_asked_for():
    assert find_shapes("torch.zeros(10_000 - inputs[0].shape[0] * 200)", "[torch.randn(40)]") is None


@given(st.lists(st.lists(st.integers(1, 50), max_size=4).map(tuple), max_size=3), st.integers(0, 999))
def test_every_cut_leaves_something_and_takes_an_odd_number(shapes, seed):
    for cut in list_cuts(shapes, random.Random(seed)):
        assert cut
        for (tensor, dim), left in cut.items():
            assert 1 <= left < shapes[tensor][dim]
            assert (shapes[tensor][dim] - left) % 2 == 1


@given(st.lists(st.lists(st.integers(1, 50), max_size=4).map(tuple), max_size=3), st.integers(0, 999))
def test_even_cuts_leave_something_and_take_an_even_number(shapes, seed):
    for cut in list_cuts(shapes, random.Random(seed), "even"):
        for (tensor, dim), left in cut.items():
            assert 1 <= left < shapes[tensor][dim]
            assert (shapes[tensor][dim] - left) % 2 == 0


@given(st.lists(st.lists(st.integers(1, 500), max_size=4).map(tuple), max_size=3), st.integers(0, 999))
def test_cuts_in_blocks_leave_whole_ones(shapes, seed):
    for cut in list_cuts(shapes, random.Random(seed), "blocks"):
        for (tensor, dim), left in cut.items():
            assert shapes[tensor][dim] / 2 <= left < shapes[tensor][dim]
            assert left % 16 == 0


def test_cut_inputs_keep_the_order_of_their_dimensions_in_memory():
    given_tensor = torch.arange(24.0).reshape(4, 6).t()
    (cut,) = cut_inputs((given_tensor,), {(0, 0): 5})
    assert cut.stride() == (1, 5)
    assert torch.equal(cut, given_tensor[:5])


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("inputs[0] * 2", False),
        ("inputs[0].softmax(1).argmax(1)", False),
        ("inputs[0].double() > 0", False),
        ("inputs[0][inputs[0][:, 0].abs().long() % 40]", True),
        ("nn.functional.binary_cross_entropy(inputs[0].sigmoid(), inputs[0].sigmoid())", True),
        ("nn.functional.binary_cross_entropy_with_logits(inputs[0], inputs[0].sigmoid())", False),
        ("torch.bernoulli(inputs[0].sigmoid())", True),
        ("inputs[0].sigmoid().multinomial(3)", True),
    ],
)
def test_references_that_only_take_some_values_are_known_by_their_operators(forward, expected):
    random_ones = "bernoulli" in forward or "multinomial" in forward
    reference = prepare("inputs[0] * 2" if random_ones else forward)
    if random_ones:
        reference.model.forward = eval(f"lambda *inputs: {forward}", {"torch": torch, "nn": torch.nn})
    assert watch_operators(reference, reference.make_inputs(3)).limits_values is expected


def test_other_weights_have_other_sizes_and_signs():
    init = "self.scale = nn.Parameter(torch.randn(20000)); self.tied = self.scale"
    init += "; self.kept = nn.Parameter(torch.rand(20000))"
    reference = prepare("inputs[0] * self.scale.sum() * self.tied[0] * self.kept.sum()", init=init)
    usual, varied = (make_other_weights(reference, 9, varied=varied).state for varied in (False, True))
    ratios = varied["scale"] / usual["scale"]
    assert torch.equal(varied["scale"], varied["tied"])
    changed = ratios[(ratios != 1) & ~usual["scale"].isnan()]
    assert 20000 / 96 < len(changed) < 20000 / 48
    assert {round(float(one)) for one in changed} <= {-1, 4, 16} and len({round(float(one)) for one in changed}) == 2
    assert float(varied["kept"].min()) >= 0.0
