"""States after many calls that only the reference makes."""

import random
import weakref
from dataclasses import replace
from itertools import count

import pytest
import torch

from harness.domain import Problem
from harness.evaluation.correctness import other_states
from harness.evaluation.correctness.other_states import MOST_CHOSEN, find_later_changes, make_later_states
from harness.evaluation.correctness.planned_calls import CALLS_IN_A_ROW, Exercises
from harness.evaluation.correctness.reference import prepare_reference
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

SOURCE = """
import torch
from torch import nn

capacity = 10


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(capacity, 4))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.kept.index_copy_(0, self.place, x)
        self.place += 1
        return self.kept.sum(0)


def get_inputs():
    return [torch.randn(1, 4)]


def get_init_inputs():
    return []
"""


def prepare(source=SOURCE):
    return prepare_reference(load_problem(Problem(name="p", suite="s", source=source), "full"), CpuDevice(), 1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_from_all_states_but_the_last_two_more_calls_succeed(seed):
    reference = prepare()
    states = make_later_states(reference, random.Random(seed)).states
    places = [int(state["place"]) for state in states]
    assert (places[:3], places[-1]) == ([1, 2, 3], 9)
    assert places[3:-1] == [4, 5, 6, 7, 8]
    for state, place in zip(states, places, strict=True):
        assert (state["kept"] != 0).any(1).tolist() == [True] * place + [False] * (10 - place)
        after = reference.outputs_of(reference.make_inputs(1), state).tensors[-2:]
        if state is not states[-1]:
            reference.outputs_of(reference.make_inputs(1), dict(zip(reference.changing, after, strict=True)))
    assert reference.changing["place"].tolist() == [0]


def test_the_same_seed_gives_the_same_state_and_another_one_does_not():
    reference = prepare()
    states = [make_later_states(reference, random.Random(seed)).states[0]["kept"] for seed in (5, 5, 6)]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_there_is_none_of_one_call_or_in_short_memory(monkeypatch):
    assert prepare(SOURCE.replace("capacity = 10", "capacity = 1")).later == ()
    reference = prepare()
    assert reference.later[-1]["place"].tolist() == [9]
    assert make_later_states(replace(reference, call_s=1.0), random.Random(5)).states == ()
    monkeypatch.setattr(other_states, "ROOMY", 1 << 60)
    assert make_later_states(reference, random.Random(5)).states == ()


COUNTED = """
import torch
from torch import nn

calls = []


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1), persistent=STORED)

    def forward(self, x):
        calls.append(x)
        self.count += len(calls) % 2 == 0
        return x + self.count


def get_inputs():
    return [torch.randn(4)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("stored", "changes"), [("True", ("count",)), ("False", ())])
def test_only_state_that_candidates_must_have_is_watched_in_later_calls(stored, changes):
    loaded = load_problem(Problem(name="p", suite="s", source=COUNTED.replace("STORED", stored)), "full")
    model = loaded.make_model(1, torch.device("cpu"))
    assert find_later_changes(loaded, model, {}) == changes
    assert bool(model.forward.__globals__["calls"]) == (stored == "True")


def test_states_that_only_some_calls_change_have_later_ones(monkeypatch):
    monkeypatch.setattr(other_states, "LATER_S", 60.0)
    reference = prepare(COUNTED.replace("STORED", "True").replace("+= len(calls) % 2 == 0", "+= x.sum() > 0"))
    for seed in range(8):
        (*_, last) = make_later_states(reference, random.Random(seed)).states
        assert 100 < last["count"] < 620


def _find_chosen(reference, seed):
    return make_later_states(reference, random.Random(seed)).states[3:-4]


def test_later_states_lie_after_any_number_of_calls(monkeypatch):
    monkeypatch.setattr(other_states, "LATER_S", 60.0)
    reference = prepare(SOURCE.replace("capacity = 10", "capacity = 200"))
    chosen = [[int(one["place"]) for one in _find_chosen(reference, seed)] for seed in range(20)]
    assert all(len({*one}) == MOST_CHOSEN and max(one) - min(one) > 50 for one in chosen)


@pytest.mark.parametrize("update", ["self.count += 0", "self.count = self.count * 1"])
def test_state_that_a_call_writes_counts_as_changed(update):
    source = COUNTED.replace("STORED", "True").replace("self.count += len(calls) % 2 == 0", update)
    assert list(prepare(source).changing) == ["count"]
    assert not prepare(source.replace(update, "pass")).changing


class NamedGpu(CpuDevice):
    has_contexts = True
    torch_device = torch.device("cuda:0")


FLOATS = SOURCE.replace("self.kept.index_copy_(0, self.place, x)\n        self.place += 1", "self.kept += x")


COUNTERS = SOURCE.replace("self.kept.index_copy_(0, self.place, x)", "self.kept += x * (self.place % 4 == 0)")


@pytest.mark.parametrize(("source", "device"), [(SOURCE, "cpu"), (FLOATS, "cuda:0"), (COUNTERS, "cuda:0")])
def test_calls_that_may_index_beyond_their_state_are_made_on_the_cpu(source, device, monkeypatch):
    assert ("index_copy_" in source) == (device == "cpu")
    inputs = prepare(source).make_inputs(1)
    reference = replace(prepare(source), device=NamedGpu.__new__(NamedGpu))
    assert other_states._choose_device(reference, inputs) == torch.device(device)
    monkeypatch.setattr(other_states, "SMALL_BYTES", 16)
    for call_s, found in ((0.009, device), (0.011, None if device == "cpu" else device)):
        long = replace(reference, call_s=call_s)
        assert other_states._choose_device(long, inputs) == (found and torch.device(found))


def test_states_that_are_not_finite_are_not_reached():
    reference = prepare(SOURCE.replace("self.place += 1", "self.place += 1; self.kept.mul_(1e15)"))
    *_, state = make_later_states(reference, random.Random(5)).states
    assert state["place"].tolist() == [1]
    assert 1e14 < state["kept"].abs().max() < 1e17


def test_calls_in_a_row_exist_one_at_a_time():
    """Inputs and outputs of all of them may not fit into memory."""
    exercises, earlier = Exercises(prepare(), count()), []

    def note(exercise):
        assert [one() for one in earlier] == [None] * len(earlier)
        earlier.append(weakref.ref(exercise.expected))
        return exercise.label

    index = exercises.steps.index(CALLS_IN_A_ROW)
    labels = list(map(note, exercises.take(index)))
    assert labels == ["as_given", "second_in_a_row", *["given_state"] * (len(labels) - 2)] and len(labels) > 4
