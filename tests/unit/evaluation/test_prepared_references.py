"""Which references are kept for the next candidates: made on a CPU that says that it is a GPU afterwards."""

from types import SimpleNamespace

import pytest

from harness.domain import Problem
from harness.evaluation.steps import KEPT_PROBLEMS, PreparedReferences
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice
from harness.sandbox.gpu.recording import KeptBaseline
from harness.sandbox.memory_limits import Room

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * {factor}


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""


class RoomyGpu(CpuDevice):
    free_bytes, keeps_references = 1 << 40, True

    def measure_room(self):
        return Room(device_bytes=self.free_bytes, host_bytes=1 << 40)


def load(factor=2.0):
    return load_problem(Problem(name="p", suite="s", source=SOURCE.format(factor=factor)), "full")


@pytest.fixture
def prepared():
    return PreparedReferences(SimpleNamespace(some_wait=False, release=lambda: None))


@pytest.fixture
def borrow(prepared):
    def run(loaded, seed=1, thrift="planned", device=None):
        prepared.begin(loaded.problem, seed)
        with prepared.borrow(loaded, device or RoomyGpu(), (seed, seed + 1), thrift) as reference:
            return reference

    return run


def add_baseline(reference):
    """Notes what is closed."""
    closed = []
    recording = SimpleNamespace(close=lambda: closed.append("recording"))
    reference.baselines["eager"] = KeptBaseline(recording)
    reference.baselines["eager"].replayers.append(SimpleNamespace(end=lambda: closed.append("replayer")))
    return closed


def test_candidates_with_the_same_seeds_share_a_reference(borrow):
    loaded = load()
    first = borrow(loaded)
    assert borrow(load()).model is first.model
    assert borrow(loaded, seed=5).model is not first.model


def test_candidates_of_a_few_problems_may_alternate(borrow):
    first = borrow(load())
    for other in range(KEPT_PROBLEMS - 1):
        borrow(load(factor=3.0 + other))
    assert borrow(load()).model is first.model


def test_kept_references_end_after_a_few_other_problems(borrow):
    closed = add_baseline(borrow(load()))
    for other in range(KEPT_PROBLEMS):
        assert closed == []
        borrow(load(factor=3.0 + other))
    assert closed == ["replayer", "recording"]


def test_another_seed_ends_what_was_kept(borrow):
    closed = add_baseline(borrow(load()))
    borrow(load(), seed=5)
    assert closed == ["replayer", "recording"]


def test_nothing_is_kept_where_memory_is_short_or_an_allocation_failed(borrow):
    device = RoomyGpu()
    first = borrow(load(), device=device)
    device.free_bytes = first.plan.device_bytes * 2
    closed = add_baseline(first)
    borrow(load(), device=device)
    assert closed == ["replayer", "recording"]
    closed = add_baseline(borrow(load()))
    borrow(load(), thrift="lean")
    assert closed == ["replayer", "recording"]


def test_on_a_cpu_nothing_is_kept(borrow):
    first = borrow(load(), device=CpuDevice())
    assert borrow(load(), device=CpuDevice()).model is not first.model
