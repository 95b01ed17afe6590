"""The sequence of a GPU measurement, with simulated workers: made-up times, computed outputs."""

import itertools
import random
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.domain import Outcome, Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.timing import window_timing
from harness.evaluation.timing.apart import ApartTimer
from harness.evaluation.timing.noise_floor import NoiseFloors, NoiseKey
from harness.evaluation.timing.paired import TimingPlan
from harness.evaluation.timing.window_timing import (
    HOPELESS_PAIRS,
    LEAST_EQUAL_PAIRS,
    LEAST_SLOW_CALLS,
    MAX_PAIRS,
    MAX_WARMUP_CALLS,
    WHOLE_PAIRS,
    WindowTimer,
)
from harness.problems.loading import load_problem
from harness.protocol.tensor_layout import TensorSpec
from harness.sandbox.devices import Device
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.model_session import Run, WindowTimes
from harness.sandbox.tensors.output_samples import Rows, Sample
from harness.sandbox.tensors.outputs import FlatOutputs
from harness.sandbox.worker_client import Called

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.exp()


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""
BASELINE_US, EXCHANGE_US, WAKE_US, PROGRAM_US, SETTLING_US = 1000.0, 150.0, 150.0, 10.0, 100.0
SPEC = TensorSpec(dtype="float32", shape=(8, 8), stride=(8, 1))
ROWS = {
    "baseline": (Rows(output=0, order=(0, 1), first=0, pitch=8, width=4, count=8),),
    "candidate": (Rows(output=0, order=(1, 0), first=0, pitch=8, width=4, count=8),),
}
KEY = NoiseKey(problem_digest="p", workload="full", baseline="eager", device_type="cuda", machine="m")


class QuietDevice(Device):
    def await_quiet(self, limit_s):
        return True


class SimulatedGpu(QuietDevice):
    is_cuda = True


class SimulatedSession(WindowSession):
    """A worker that takes about `usual_us` a call."""

    is_read_in_places = True

    def __init__(self, usual_us, seed, spoil=lambda outputs: outputs, late_us=0.0, slowing=lambda x: 1.0):
        self.usual_us, self.spoil, self.late_us, self.source = usual_us, spoil, late_us, random.Random(seed)
        self.slowing = slowing
        self.calls, self.paused, self.saw_new_memory = 0, False, False
        self.copied_whole = []

    def scatter(self, value_us):
        return value_us + abs(self.source.gauss(0, 4.0))

    def reset_state(self, given=None):
        pass

    def pause(self):
        self.paused = True

    def resume(self):
        self.paused = False

    def pin(self, outputs, views):
        pass

    def collect_garbage(self):
        pass

    def has_lost_pinned(self):
        return False

    def call(self, inputs, device, *, look=True, in_whole=True, places=None):
        assert not self.paused
        self.calls += 1
        self.copied_whole.append(in_whole)
        reported_us = self.scatter(self.usual_us * self.slowing(inputs[0]))
        outputs = FlatOutputs(tree={"t": 0}, tensors=(self.spoil(inputs[0].exp()),))
        called = Called(
            claim_us=reported_us, at_ns=0, tree=outputs.tree, specs=(SPEC,), devices=("cpu",), addresses=(0,)
        )
        times = WindowTimes(
            wake_us=self.scatter(WAKE_US),
            go_us=reported_us + PROGRAM_US,
            unread_us=5.0,
            snapshot_us=30.0,
            settling_us=self.scatter(SETTLING_US + self.late_us),
        )
        judge_us = reported_us + self.scatter(EXCHANGE_US)
        return Run(outputs=outputs, called=called, judge_us=judge_us, taken=True, times=times)


@pytest.fixture(scope="module")
def reference():
    return prepare_reference(
        load_problem(Problem(name="p", suite="s", source=SOURCE), "full"), QuietDevice("cpu"), 1, 2
    )


def measure(
    reference,
    candidate_us,
    find_floor=lambda equals: 0.0,
    spoil=lambda outputs: outputs,
    late_us=0.0,
    slowing=lambda x: 1.0,
    seed=3,
):
    """The result, and all sessions: baseline, its pair, candidate."""
    numbers, opened = itertools.count(), []

    @contextmanager
    def open_session(usual_us, *hidden):
        session = SimulatedSession(usual_us, next(numbers), *hidden)
        opened.append(session)
        yield session

    timer = WindowTimer(reference=reference, plan=TimingPlan(allow_load=True), seed=seed)
    result = timer.measure(
        "eager",
        lambda: open_session(BASELINE_US),
        lambda: open_session(candidate_us, spoil, late_us, slowing),
        itertools.count(100),
        find_floor,
    )
    return result, opened


@pytest.mark.parametrize(("candidate_us", "verdict"), [(500.0, "faster"), (999.0, "tie"), (1300.0, "slower")])
def test_a_measurement_recovers_the_speedup(reference, candidate_us, verdict):
    result, _ = measure(reference, candidate_us)
    assert (result.outcome, result.timing.baseline, result.timing.verdict) == (None, "eager", verdict)
    assert result.timing.speedup == pytest.approx(BASELINE_US / candidate_us, rel=0.03)


def test_work_after_the_window_counts(reference):
    result, _ = measure(reference, 500.0, late_us=400.0)
    assert 850.0 < result.timing.candidate_us < 910.0
    assert [finding.check for finding in result.findings] == ["reported_time"]


@pytest.mark.parametrize(("slowing", "speedup"), [(1.0, 2.0), (1.5, 1.33), (3.0, 0.67)])
def test_the_time_with_other_inputs_than_given_counts_where_a_candidate_is_slower(reference, slowing, speedup):
    """Whose values are beyond 5: no given ones are."""
    reference = replace(reference, timed_steps=("varied",))
    result, _ = measure(reference, 500.0, slowing=lambda x: slowing if x.abs().max() > 5.0 else 1.0)
    assert result.timing.speedup == pytest.approx(speedup, rel=0.05)
    assert [finding.check for finding in result.findings] == ["slower_inputs"] * (slowing > 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_a_candidate_that_is_faster_is_timed_with_every_kind_of_inputs(reference, seed):
    reference = replace(reference, timed_steps=("biased",) * 12 + ("varied",))
    result, _ = measure(reference, 500.0, slowing=lambda x: 3.0 if x.abs().max() > 5.0 else 1.0, seed=seed)
    assert [finding.check for finding in result.findings] == ["slower_inputs"]


def test_the_noise_floor_is_taken_from_both_pairs_of_baselines(reference):
    floors, seen = NoiseFloors(None), []

    def find_floor(equals):
        seen.extend(equals)
        return floors.widen(KEY, equals)

    result, _ = measure(reference, 500.0, find_floor)
    assert [timing.baseline for timing in seen] == ["eager", "eager"]
    assert all(timing.conditions is not None for timing in seen)
    assert result.timing.noise_floor >= 0.03


def test_a_candidate_that_is_far_slower_is_timed_a_few_times_only(reference):
    result, (_, _, candidate) = measure(reference, 20_000.0)
    assert result.timing.verdict == "slower"
    assert candidate.calls < 3 * HOPELESS_PAIRS < MAX_PAIRS


def test_once_a_candidate_is_far_slower_every_pair_counts(reference):
    for seed in range(8):
        _, (_, _, candidate) = measure(reference, 20_000.0, seed=seed)
        assert not any(candidate.copied_whole[1 - HOPELESS_PAIRS :])


def test_equal_pairs_after_a_far_slower_candidate_are_few_and_no_noise_floor(reference):
    seen = []
    measure(reference, 20_000.0, lambda equals: seen.extend(equals) or 0.0)
    assert [len(timing.blocks) > LEAST_EQUAL_PAIRS for timing in seen] == [True]


@pytest.mark.parametrize("candidate_us", [1.2e6, 1.2e3])
def test_slow_calls_that_are_far_slower_are_not_awaited_to_be_steady(reference, monkeypatch, candidate_us):
    """Each call comes with new memory."""
    now_s = itertools.count(0, 0.6)  # each look at the clock
    monkeypatch.setattr(window_timing, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    session = SimulatedSession(candidate_us, 1)
    session.saw_new_memory = True
    timer = WindowTimer(reference=reference, plan=TimingPlan(allow_load=True), seed=3)
    timer._warm_up(session, itertools.count(100), BASELINE_US)
    assert session.calls == (LEAST_SLOW_CALLS if candidate_us > 1e6 else MAX_WARMUP_CALLS)


def test_a_candidate_that_is_wrong_in_timed_calls_only_is_suspect(reference):
    calls = itertools.count()

    def spoil(outputs):
        return outputs if next(calls) < 3 else torch.zeros_like(outputs)

    result, _ = measure(reference, 500.0, spoil=spoil)
    assert result.outcome == Outcome.SUSPECT
    assert "timed call was wrong" in result.message


def test_bytes_that_are_late_where_windows_do_not_read_are_found_by_windows_with_whole_outputs(reference):
    class Late(SimulatedSession):
        def call(self, inputs, device, *, look=True, in_whole=True, places=None):
            self.spoil = torch.zeros_like if in_whole else lambda outputs: outputs
            return super().call(inputs, device, look=look, in_whole=in_whole, places=places)

    numbers = itertools.count()
    timer = WindowTimer(reference=reference, plan=TimingPlan(allow_load=True), seed=3)
    result = timer.measure(
        "eager",
        lambda: nullcontext(SimulatedSession(BASELINE_US, next(numbers))),
        lambda: nullcontext(Late(500.0, next(numbers))),
        itertools.count(100),
    )
    assert result.outcome == Outcome.SUSPECT


def test_outputs_of_both_sides_are_copied_whole_where_those_of_the_candidate_are_sparse(reference):
    copied = {"baseline": [], "candidate": []}

    class Noted(SimulatedSession):
        def __init__(self, usual_us, side):
            super().__init__(usual_us, side)
            self.side, self.is_read_in_places = side, side == "baseline"

        def call(self, inputs, device, *, look=True, in_whole=True, places=None):
            copied[self.side].append(in_whole)
            return super().call(inputs, device, look=look, in_whole=in_whole, places=places)

    timer = WindowTimer(reference=reference, plan=TimingPlan(allow_load=True), seed=3)
    result = timer.measure(
        "eager",
        lambda: nullcontext(Noted(BASELINE_US, "baseline")),
        lambda: nullcontext(Noted(500.0, "candidate")),
        itertools.count(100),
    )
    assert result.timing.verdict == "faster"
    assert all(copied["candidate"][-20:])
    assert all(copied["baseline"][-20:])
    assert not any(copied["baseline"][:10])


def test_calls_are_compared_in_whole_once_samples_of_both_sides_have_other_places(reference):
    """As where the candidate's outputs have another layout."""
    asked = {"baseline": [], "candidate": []}

    class Sampled(SimulatedSession):
        def take_samples(self):
            pass

        def call(self, inputs, device, *, look=True, in_whole=True, places=None):
            run = super().call(inputs, device, look=look, in_whole=in_whole, places=places)
            if places is not None:
                asked[self.side].append((in_whole, places))
            parts = tuple(tensor.flatten() for tensor in run.outputs.tensors)
            rows = () if in_whole else ROWS[self.side]
            return replace(run, outputs=replace(run.outputs, tensors=parts), sample=Sample(((0,),), rows))

    numbers = itertools.count()

    @contextmanager
    def open_session(side):
        session = Sampled(BASELINE_US, next(numbers))
        session.side = side
        yield session

    thrifty = replace(reference, plan=replace(reference.plan, timed_outputs=False))
    timer = WindowTimer(reference=thrifty, plan=TimingPlan(allow_load=True), seed=3)
    timer.measure("eager", lambda: open_session("baseline"), lambda: open_session("candidate"), itertools.count(100))
    first_whole = next(index for index, (in_whole, _) in enumerate(asked["candidate"]) if in_whole)
    assert first_whole <= WHOLE_PAIRS
    assert all(in_whole for in_whole, _ in asked["candidate"][first_whole:])
    assert {places for _, places in asked["candidate"]} < {places for _, places in asked["baseline"]}


@pytest.mark.parametrize(("pair_kept", "workers"), [(True, 3), (False, 4)])
def test_the_worker_of_the_equal_pairs_is_kept_where_memory_allows(reference, pair_kept, workers):
    planned = replace(reference, plan=replace(reference.plan, pair_kept=pair_kept))
    result, opened = measure(planned, 500.0)
    assert len(opened) == workers
    assert result.timing.verdict == "faster"
    assert not any(session.paused for session in opened)


@pytest.mark.parametrize(("slowed_phases", "candidates", "verdict"), [(1, 2, "tie"), (2, 2, "slower")])
def test_a_slower_baseline_beside_the_candidate_is_measured_again(reference, slowed_phases, candidates, verdict):
    """Once it may be a change of the clock, which slows both; twice it is charged to the candidate."""
    opened = []

    class Slowing(SimulatedSession):
        def call(self, inputs, device, *, look=True, in_whole=True, places=None):
            slowed = len(candidate_sessions) <= slowed_phases and candidate_sessions and candidate_sessions[-1].is_open
            self.usual_us = BASELINE_US * (1.1 if slowed else 1.0)
            return super().call(inputs, device, look=look, in_whole=in_whole, places=places)

    candidate_sessions, numbers = [], itertools.count()

    @contextmanager
    def open_session(sessions):  # two at a time, in threads
        session = Slowing(BASELINE_US, next(numbers))
        session.is_open = True
        sessions.append(session)
        yield session
        session.is_open = False

    timer = WindowTimer(reference=reference, plan=TimingPlan(allow_load=True), seed=3)
    result = timer.measure(
        "eager", lambda: open_session(opened), lambda: open_session(candidate_sessions), itertools.count(100)
    )
    assert (len(candidate_sessions), result.timing.verdict) == (candidates, verdict)


def test_samples_are_taken_where_the_plan_keeps_no_timed_outputs(reference):
    thrifty = replace(reference, plan=replace(reference.plan, timed_outputs=False))
    asked = []

    class Sampled(SimulatedSession):
        def take_samples(self):
            asked.append(self)

    timer = WindowTimer(reference=thrifty, plan=TimingPlan(allow_load=True), seed=3)
    sessions, numbers = [], itertools.count()

    @contextmanager
    def open_session():
        session = Sampled(BASELINE_US, next(numbers))
        sessions.append(session)
        yield session

    timer.measure("eager", open_session, open_session, itertools.count(100))
    assert len(asked) == len(sessions)
    assert set(asked) == set(sessions)


@pytest.mark.parametrize("in_places", [True, False])
def test_two_workers_that_take_turns_are_read_alike_as_the_baselines_outputs_allow(reference, monkeypatch, in_places):
    monkeypatch.setattr(SimulatedSession, "is_read_in_places", in_places)
    numbers, opened = itertools.count(), []

    @contextmanager
    def open_session(usual_us):
        opened.append(SimulatedSession(usual_us, next(numbers)))
        yield opened[-1]

    on_gpu = replace(reference, device=SimulatedGpu("cpu"))
    timer = ApartTimer(reference=on_gpu, plan=TimingPlan(budget_s=0.2, allow_load=True), seed=3)
    opens = (lambda: open_session(BASELINE_US), lambda: open_session(BASELINE_US / 2))
    result = timer.measure("eager", *opens, itertools.count(100))
    assert (result.outcome, result.timing.verdict) == (None, "faster")
    assert result.timing.speedup == pytest.approx(2.0, rel=0.05)
    before, candidate, after = opened
    assert [after.usual_us, candidate.usual_us] == [before.usual_us, before.usual_us / 2]
    warm_up = before.calls - len(result.timing.blocks) // 2
    assert before.copied_whole[warm_up:] == [not in_places] * (before.calls - warm_up)
    assert {*candidate.copied_whole, *after.copied_whole} == {not in_places}


@pytest.mark.parametrize(
    ("usual_us", "call_s", "count"),
    [(1e3, 1e-3, 75), (1e3, 0.1, 15), (1e3, 0.5, 10), (1e3, 2.0, 3), (2e6, 2.1, 3)],
    ids=["most", "budget", "least", "slow around the call", "slow"],
)
def test_a_baseline_that_is_timed_twice_gets_half_the_pairs_and_fewer_where_calls_take_long(
    reference, usual_us, call_s, count
):
    assert ApartTimer(reference=reference, plan=TimingPlan(), seed=3)._count_calls(usual_us, call_s) == count
