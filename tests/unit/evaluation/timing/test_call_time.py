"""Whole calls on a GPU beside the device time, with simulated workers."""

import itertools
import time
from contextlib import contextmanager, nullcontext
from dataclasses import field, make_dataclass
from types import SimpleNamespace

import pytest
from simulated_gpu import SimulatedSession, make_reference

from harness.domain import CandidateFailure, Finding, Outcome
from harness.evaluation.model_workers import BaselineFailure
from harness.evaluation.results import StepResult, WrongCall
from harness.evaluation.timing import apart
from harness.evaluation.timing.apart import CALLS, MOST_CALLS, time_calls
from harness.evaluation.timing.recordings import keep_baseline
from harness.evaluation.timing_steps import confirm_wrong_call

CALL_US = 80.0


@pytest.fixture
def reference():
    return make_reference()


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(apart, "BUDGET_S", 60.0)


def session_of(**how):
    return SimulatedSession(lambda inputs: CALL_US, **how)


@pytest.mark.usefixtures("patient")
def test_a_call_takes_the_median_by_the_evaluators_clock(reference):
    session = session_of()
    timed = time_calls(session, reference, itertools.count(100), checks=True)
    assert timed.median_us == pytest.approx(CALL_US, abs=5.0)  # the worker reports 1 us
    assert (timed.wrong, session.calls) == (None, CALLS)


class NewMemory(SimulatedSession):
    """Its first `news` calls return outputs in memory that has to be mapped, which takes long."""

    news = 0

    def call(self, inputs, device, *, look=True):
        self.saw_new_memory = self.calls < self.news
        return super().call(inputs, device, look=look)


@pytest.mark.parametrize(("news", "calls", "median_us"), [(6, 6 + CALLS, CALL_US), (1000, MOST_CALLS, 1e4)])
@pytest.mark.usefixtures("patient")
def test_calls_with_outputs_in_new_memory_count_only_without_others(reference, news, calls, median_us):
    session = NewMemory(lambda inputs: 1e4 if session.saw_new_memory else CALL_US)
    session.news = news
    assert time_calls(session, reference, itertools.count(100)).median_us == pytest.approx(median_us, abs=5.0)
    assert session.calls == calls


def test_one_call_is_enough_of_a_slow_program(reference):
    def sleep(inputs):
        time.sleep(0.2)
        return 2e5

    session = SimulatedSession(sleep)
    assert time_calls(session, reference, itertools.count(100)).median_us == pytest.approx(2e5, abs=20.0)
    assert session.calls == 1


@pytest.mark.usefixtures("patient")
def test_a_program_that_is_wrong_only_in_these_calls_is_found(reference):
    timed = time_calls(session_of(spoil=lambda outputs: outputs * 1.5), reference, itertools.count(100), checks=True)
    assert "a timed call was wrong" in timed.wrong.message


@pytest.mark.parametrize(
    ("spoil", "outcome", "check"),
    [
        (lambda outputs: outputs * 1.5, Outcome.WRONG_VALUE, "correctness"),
        (lambda outputs: outputs, Outcome.SUSPECT, "timed_call"),
    ],
)
def test_a_program_that_is_also_wrong_untimed_is_not_suspect(reference, spoil, outcome, check):
    workers = SimpleNamespace(open_constructed_candidate=lambda *_: nullcontext(session_of(spoil=spoil)))
    tools, task = SimpleNamespace(workers=workers), SimpleNamespace(candidate=None)
    case = SimpleNamespace(reference=reference, tools=tools, task=task, set_worker_aside=nullcontext)
    kept, timed = (Finding(check="calls", severity="note", message="."), WrongCall("too large", seed=100))
    fatal = Finding(check="timed_call", severity="fatal", message=timed.message)
    accused = StepResult(outcome=Outcome.SUSPECT, message=timed.message, findings=(kept, fatal), wrong_call=timed)
    result = confirm_wrong_call(case, accused)
    assert result.outcome is outcome
    assert [finding.check for finding in result.findings] == ["calls", check]
    assert "(on as_given inputs)" in result.message or result == accused


@pytest.mark.usefixtures("patient")
def test_calls_of_the_baseline_are_timed_once_for_all_candidates(reference):
    opened = []

    class Recorded(SimulatedSession):
        def record(self, inputs, *, may_read_back):
            self.timed = self.calls
            return make_dataclass("Recording", [("seed", int, field(default=0))])()

    @contextmanager
    def start():
        opened.append(Recorded(lambda inputs: CALL_US))
        yield opened[-1]

    finished = []
    ahead = SimpleNamespace(finish=lambda: finished.append(opened[-1].calls))
    kept = []
    for _ in range(2):
        with keep_baseline("eager", start, reference, itertools.count(100), ahead) as one:
            kept.append(one.call_us)
    assert kept == [pytest.approx(CALL_US, abs=5.0)] * 2
    (session,) = opened
    assert session.timed - finished[0] == CALLS  # nothing else starts or ends meanwhile, and none is the recorded one
    assert finished[0] > 0  # the worker was warm


def test_a_baseline_that_fails_here_is_no_fault_of_the_candidate(reference):
    class Failing(SimulatedSession):
        def call(self, inputs, device, *, look=True):
            raise CandidateFailure(Outcome.TIMEOUT, "a call took too long")

    ahead = SimpleNamespace(finish=lambda: None)
    kept = keep_baseline("eager", lambda: nullcontext(Failing(None)), reference, itertools.count(100), ahead)
    with pytest.raises(BaselineFailure, match="a call took too long"), kept:
        pass
