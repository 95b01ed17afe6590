"""A candidate whose GPU work cannot be replayed, with simulated workers: whole calls against the baseline's replays."""

import itertools
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from simulated_gpu import SimulatedAhead, SimulatedRecording, SimulatedSession, make_reference

from harness.domain import TimedBaseline
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing import cold_replays
from harness.evaluation.timing_steps import CandidateTimer
from harness.sandbox.gpu.recording import NotReplayable

CALL_US, DEVICE_US = 1000.0, 900.0


@dataclass
class Recorded(SimulatedRecording):
    time_us: float
    seed: int = 0
    replays: int = 0

    def __post_init__(self):
        super().__init__(self.time_us)


class Workers:
    """Notes which workers live whenever one of the baseline's is called or replayed."""

    def __init__(self):
        self.ahead, self.living, self.seen = SimulatedAhead(), set(), []

    @contextmanager
    def open(self, name, call_us):
        def take_us(inputs):
            self.seen.append(frozenset(self.living))
            return call_us

        def record(inputs, *, may_read_back):
            self.seen.append(frozenset(self.living))
            return Recorded(DEVICE_US)

        session = SimulatedSession(take_us)
        session.record = record
        self.living.add(name)
        yield session
        self.living.remove(name)

    def open_baseline(self, reference, baseline):
        return self.open("baseline", CALL_US)

    def open_constructed_candidate(self, candidate, reference):
        return self.open("timed candidate", CALL_US / 2)


@pytest.fixture
def case(monkeypatch):
    monkeypatch.setattr(cold_replays, "CLEAN_BYTES", 64)
    workers, worker = Workers(), ExitStack()
    session = worker.enter_context(workers.open("checked candidate", CALL_US / 2))
    plan = TimingPlan(budget_s=0.1, allow_load=True)
    settings = SimpleNamespace(timed_plan=plan, attribute_work=False, energy=False)
    return SimpleNamespace(
        keeps_worker=False,
        session=session,
        worker=worker,
        recorded=NotReplayable("its call waits for the host"),
        recorded_functions=None,
        replayed_kernels=None,
        record=SimpleNamespace(phase=lambda name: nullcontext()),
        reference=replace(make_reference(), baselines={}),
        seeds=itertools.count(100),
        task=SimpleNamespace(run=SimpleNamespace(timed_runs=1), candidate=None, libraries=[]),
        tools=SimpleNamespace(workers=workers, settings=settings),
        set_worker_aside=lambda: worker.close() or nullcontext(),
    )


def test_the_baseline_is_recorded_and_timed_without_the_candidate(case):
    workers = case.tools.workers
    assert workers.living == {"checked candidate"}
    timing = CandidateTimer(case).time(TimedBaseline()).timing
    assert (timing.clock, timing.verdict) == ("bound", "faster")
    assert timing.baseline_us == pytest.approx(DEVICE_US)
    assert timing.speedup == pytest.approx(2 * DEVICE_US / CALL_US, rel=0.05)
    assert set(workers.seen) == {frozenset({"baseline"}), frozenset({"timed candidate"})}
