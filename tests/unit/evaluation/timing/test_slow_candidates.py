"""How often a program is called whose verdict is certain: counts of calls, with simulated workers and replayers."""

import itertools
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from simulated_gpu import SimulatedAhead, SimulatedRecording, SimulatedSession, make_reference

from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing import cold_replays, replay_statistics
from harness.evaluation.timing.apart import LEAST_SLOW_CALLS, SURE_CALLS, ApartTimer
from harness.evaluation.timing.block_statistics import SLOW_US, SURELY_SLOWER
from harness.evaluation.timing.paired import SURE_BLOCKS, PairedTimer
from harness.evaluation.timing.replay_timing import ReplayTimer
from harness.sandbox.gpu.recording import KeptBaseline

KINDS = ("contrasted", "zeros", "large")
SLOW = 2 * SURELY_SLOWER * SLOW_US
SLOW_REPLAY = 2 * replay_statistics.SURELY_SLOWER * replay_statistics.SLOW_US
PLAN = TimingPlan(budget_s=0.1, allow_load=True)


@pytest.fixture(scope="module")
def reference():
    return replace(make_reference(), timed_steps=KINDS)


@pytest.fixture
def replay(reference, monkeypatch):
    """The result, the number of the candidate's replays and of replayers on both sides."""
    monkeypatch.setattr(cold_replays, "CLEAN_BYTES", 64)

    def run(baseline_us, candidate_us):
        ahead, candidate = SimulatedAhead(), SimulatedRecording(candidate_us)
        timer = ReplayTimer(reference=reference, plan=PLAN, seeds=itertools.count(100), ahead=ahead)
        baseline = KeptBaseline(SimulatedRecording(baseline_us))
        result = timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
        return result, candidate.replays, ahead.taken

    return run


@pytest.mark.parametrize("baseline_us", [10.0, replay_statistics.SLOW_US])
def test_few_replays_show_that_a_slow_program_is_slower(replay, baseline_us):
    result, replays, replayers = replay(baseline_us, SLOW_REPLAY)
    assert (result.outcome, result.timing.verdict) == (None, "slower")
    assert result.timing.candidate_us == pytest.approx(SLOW_REPLAY)
    assert replays == 2 + replay_statistics.SURE_PAIRS  # the first ones with given inputs and one other kind
    assert replayers == 2


@pytest.mark.parametrize(
    ("baseline_us", "candidate_us"),
    [(SLOW_REPLAY, SLOW_REPLAY), (SLOW_REPLAY / 1.4, SLOW_REPLAY), (10.0, replay_statistics.SLOW_US / 2)],
    ids=["tie", "1.4x", "short"],
)
def test_others_are_replayed_with_every_kind_of_inputs(replay, baseline_us, candidate_us):
    result, replays, _ = replay(baseline_us, candidate_us)
    assert result.outcome is None
    assert replays > 1 + len(KINDS) + replay_statistics.DECIDED_PAIRS


@pytest.mark.parametrize(("factor", "is_few"), [(2.0, True), (0.5, False)])
def test_few_whole_calls_show_that_a_slow_program_is_slower(reference, factor, is_few):
    opened, times = [], iter([SLOW_US, factor * SURELY_SLOWER * SLOW_US, SLOW_US])

    @contextmanager
    def start():
        time_us = next(times)
        opened.append(SimulatedSession(lambda inputs: time_us))
        yield opened[-1]

    timer = ApartTimer(reference=reference, plan=replace(PLAN, budget_s=2.0), seed=3)
    result = timer.measure("eager", start, start, itertools.count(100))
    assert result.timing.verdict == "slower"
    most = 3 + LEAST_SLOW_CALLS + SURE_CALLS + len(KINDS)  # some of the first calls may have other kinds of inputs
    assert (opened[1].calls <= most) is is_few


class ReportingSession:
    used_s = 0.0

    def __init__(self, time_us):
        self.time_us, self.calls, self.warm_calls = time_us, 0, 0

    def call(self, inputs, device, *, look):
        self.warm_calls += 1
        return self.describe()

    def call_timed(self, *, take, keep):
        self.calls += 1
        return self.describe()

    def describe(self):
        called = SimpleNamespace(reported_us=self.time_us, loading_us=0.0, specs=())
        return SimpleNamespace(
            called=called, call_us=None, evaluator_us=self.time_us, copy_us=5.0, taken=False, memory_sample=None
        )

    def complete(self, run):
        return run

    def server_used_s(self):
        return 0.0

    def stage(self, inputs, state, *, look):
        pass

    def reset_state(self):
        pass

    prepare_call = disarm = collect_garbage = lambda self, *inputs: None


@pytest.mark.parametrize(("candidate_us", "warm", "calls"), [(SLOW, 1, SURE_BLOCKS), (1000.0, 3, 20)])
def test_few_pairs_on_a_cpu_show_that_a_slow_program_is_slower(reference, monkeypatch, candidate_us, warm, calls):
    monkeypatch.setattr("harness.evaluation.timing.paired.pin_to_cores", lambda cores: nullcontext())
    baseline, candidate = ReportingSession(100.0), ReportingSession(candidate_us)
    plan = replace(PLAN, min_blocks=20, max_blocks=20, budget_s=60.0)
    timer = PairedTimer(baseline=baseline, candidate=candidate, reference=reference, plan=plan, seed=1)
    monkeypatch.setattr(timer, "_find_wrong_call", lambda: None)
    result = timer.measure("eager", itertools.count(100))
    assert result.timing.verdict == "slower"
    assert (candidate.warm_calls, candidate.calls) == (warm, calls)
