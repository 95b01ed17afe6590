"""States after more calls than can be made."""

import random
from dataclasses import replace
from itertools import count

import pytest
import torch

from harness.domain import Problem
from harness.evaluation.correctness import other_states
from harness.evaluation.correctness.other_states import make_later_states, name_state, plan_state
from harness.evaluation.correctness.planned_calls import CALLS_IN_A_ROW, Exercises
from harness.evaluation.correctness.reference import prepare_reference
from harness.problems import far_states
from harness.problems.far_states import PERIODS
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", FIRST)

    def forward(self, x):
        UPDATE
        return torch.where(CONDITION, x * 3.0, x * 2.0)


def get_inputs():
    return [torch.randn(8)]


def get_init_inputs():
    return []
"""
COUNT, RISES = "torch.zeros(1, dtype=torch.int64)", "self.count += 1"


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """A busy machine must not end the search for states."""
    for module, name in ((far_states, "FAR_S"), (other_states, "LATER_S"), (other_states, "LATER_CALLS_S")):
        monkeypatch.setattr(module, name, 60.0)


def prepare(first=COUNT, update=RISES, condition="self.count > 500"):
    source = SOURCE.replace("FIRST", first).replace("UPDATE", update).replace("CONDITION", condition)
    return prepare_reference(load_problem(Problem(name="p", suite="s", source=source), "full"), CpuDevice(), 1, 2)


def find_special(reference, seeds=range(150)):
    """Return in how many timed calls some outputs are three times the inputs."""
    inputs = reference.make_inputs(1)
    outputs = [reference.outputs_of(inputs, reference.make_timed_state(seed)).tensors[0] for seed in seeds]
    return sum(bool(torch.isclose(one, inputs[0] * 3.0).any()) for one in outputs)


@pytest.mark.parametrize(
    ("first", "update", "condition"),
    [
        (COUNT, RISES, "self.count > 500"),
        (COUNT, RISES, "self.count % 256 == 200"),
        (COUNT, RISES, "self.count % 256 == 0"),
        (COUNT, RISES, "self.count % 750 == 0"),
        (COUNT, RISES, "self.count % 64 == 30"),
        ("torch.zeros(1, dtype=torch.int16)", RISES, "self.count % 256 == 0"),
        ("torch.zeros(1)", RISES, "self.count % 168 == 0"),
        ("torch.full((1,), 300)", "self.count -= 1", "self.count <= 0"),
        ("torch.arange(8) + 1", RISES, "self.count % 1024 == 0"),
        ("torch.zeros(1)", "self.count += 0.01", "self.count > 5.0"),
        ("torch.ones(1)", "self.count *= 0.99", "self.count < 0.1"),
        (COUNT, "self.count += (x > 0).sum() + 1", "self.count > 10000"),
    ],
)
def test_some_timed_calls_begin_after_many_more(first, update, condition):
    reference = prepare(first, update, condition)
    assert 5 < find_special(reference) < 75  # fewer than half: the median is of usual calls


@pytest.mark.parametrize("period", [256, 750, 8064000])
def test_of_a_slow_reference_some_begin_where_most_periods_end(period, monkeypatch):
    monkeypatch.setattr(far_states, "MOST_TRIED", 20)
    assert find_special(prepare(condition=f"self.count % {period} == 0")) > 5


@pytest.mark.parametrize(
    ("first", "update"),
    [
        (COUNT, "self.count.copy_((self.count + 1) % 8)"),
        (COUNT, "self.count.copy_((self.count + 1).clamp(max=100))"),
        (COUNT, "self.count.copy_(x[:1] * 1000)"),
        ("torch.zeros(8)", "self.count.mul_(0.9).add_(x, alpha=0.1)"),
        ("torch.ones(8)", "self.count.mul_(1 - 1e-8).add_(x, alpha=1e-8)"),
        ("torch.zeros(1, dtype=torch.bool)", "self.count |= True"),
        ("torch.zeros(5000)", "self.count += x.repeat(625)"),
    ],
)
def test_changes_without_a_rule_have_no_far_states(first, update):
    assert prepare(first, update, "self.count[:1] > 500").far is None


def test_integers_do_not_overflow():
    reference = prepare("torch.full((1,), 31000, dtype=torch.int16)")
    assert max(map(max, reference.far.usable)) <= 32767 - 31000
    assert all(0 < int(reference.make_timed_state(seed)["count"]) <= 32767 for seed in range(100))


def test_values_that_follow_from_the_number_of_calls_stay_in_step():
    update = "self.count += 1; self.count[1] = self.count[0] % 5"
    source_first = "torch.zeros(2, dtype=torch.int64)"
    assert prepare(source_first, update, "self.count[:1] > 500").far is None  # of one tensor
    split = SOURCE.replace("UPDATE", "self.count += 1; self.place.copy_((self.place + 1) % 5)")
    split = split.replace("FIRST", f'{COUNT}); self.register_buffer("place", {COUNT}').replace(
        "CONDITION", "self.count > 500"
    )
    problem = Problem(name="p", suite="s", source=split)
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    assert {calls for group in reference.far.usable for calls in group} == {PERIODS, 2 * PERIODS}
    states = [reference.make_timed_state(seed) for seed in range(60)]
    assert all(int(state["count"]) % 5 == int(state["place"]) for state in states)
    assert any(int(state["count"]) > PERIODS for state in states)


def test_a_state_that_calls_do_not_go_on_from_is_not_used(monkeypatch):
    monkeypatch.setattr(far_states, "FAR_S", 5.0)
    update = "self.count += 1; torch.zeros(1000)[self.count - 1]"
    assert max(map(max, prepare(update=update).far.usable)) < 1000


def test_a_value_that_a_call_multiplies_becomes_zero_rather_than_lose_digits():
    far = prepare("torch.ones(1)", "self.count *= 0.9", "self.count < 0.1").far
    assert float(far.at(10)["count"] / far.base["count"]) == pytest.approx(0.9**10, rel=1e-4)
    assert [float(far.at(calls)["count"]) for calls in (900, 1 << 20)] == [0.0, 0.0]


def test_groups_of_far_states_are_named_and_rare_ones_are_not():
    reference = prepare(condition="self.count % 256 == 200")
    assert reference.far.rare and all(reference.far.find_group(calls) == 0 for calls in reference.far.rare)
    names = {name_state(reference, seed) for seed in range(300)}
    labels = [f"as_given (in states after {begin} calls)" for begin in (256, 65536)]
    assert names == {"", *labels}
    far = [seed for seed in range(300) if name_state(reference, seed) == labels[1]]
    assert all(int(reference.make_timed_state(seed)["count"]) > 65536 for seed in far)
    assert {plan_state(reference, seed).origin for seed in far} == {"far"}


def test_the_states_of_a_reference_that_varies_are_not_told_apart():
    reference = prepare(condition="self.count % 256 == 200")
    varying = replace(reference, variation="differs")
    assert make_later_states(varying, random.Random(3)).far.rare == ()


def make_row(reference, seed=0):
    exercises = Exercises(reference, count(seed))
    return list(exercises.take(exercises.steps.index(CALLS_IN_A_ROW)))


def test_calls_in_a_row_begin_with_states_of_each_group():
    reference = prepare(condition="self.count % 256 == 200")
    row = [one for one in make_row(reference) if one.state is not None and one.kind.name == "as_given"]
    calls = [int(one.state["count"]) for one in row]
    assert sum(one > 65536 for one in calls) == 1 and sum(256 <= one < 65536 for one in calls) >= 1
    assert sum((one + 1) % 256 == 200 for one in calls) >= 2


def test_calls_in_a_row_begin_with_what_unusual_inputs_left():
    reference = prepare("torch.zeros(1)", "self.count.copy_(x.abs().max())", "self.count > 7.0")
    rows = [one for seed in range(6) for one in make_row(reference, seed) if one.state is not None]
    unusual = [one for one in rows if one.kind.name != "as_given"]
    assert len(unusual) > 6 and max(float(one.state["count"]) for one in unusual) > 7.0
    assert all(float(one.state["count"]) < 7.0 for one in rows if one.kind.name == "as_given")


def test_states_whose_next_call_does_something_rare_are_chosen():
    update = "self.count.copy_(torch.where(self.count % 40 == 39, self.count - 39, self.count + 1))"
    assert {int(state["count"]) for state in prepare(update=update).later} >= {39}
