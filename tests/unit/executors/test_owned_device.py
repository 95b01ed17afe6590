"""Whose evaluator process a device has, with processes that do as the test says."""

import threading
import time
from dataclasses import replace

import pytest
from built_evaluations import build_subject

from harness.domain import (
    BuildSummary,
    Correctness,
    DeviceError,
    Evaluation,
    Outcome,
    Problem,
    ReferenceStopped,
    Timing,
    Trial,
)
from harness.executors import processes
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.executor import Task
from harness.executors.processes import OwnedDevice
from harness.executors.settings import LocalSettings

SUBJECT = build_subject()
TRIALS = Correctness(trials=(Trial(distribution="as_given", passed=True),), weights="none")
TIMING = Timing(
    baseline="compile", baseline_us=2.0, candidate_us=1.0, speedup=2.0, speedup_low=1.9, speedup_high=2.1,
    overhead_us=0.1, verdict="faster", blocks=(),
)  # fmt: skip


def make_job(owner=""):
    return Job(task=Task(subject=SUBJECT, problem=Problem(name="p", suite="s", source=""), candidate=None, owner=owner))


class Process:
    chip, lock, waits_for, build_counts, precompiling_s = "CPU", "", "", {"built": 1}, 0.0

    def __init__(self, owner, act):
        self.owner, self._act, self.is_closed, self.killed = owner, act, False, threading.Event()

    def evaluate(self, job):
        return self._act(self)

    def kill(self):
        self.killed.set()

    def close(self):
        self.is_closed = True


def give_verdict(process):
    return Evaluation(subject=SUBJECT, outcome=Outcome.WRONG_VALUE, duration_s=5e9)


def lose(process):
    raise DeviceLost("the evaluator process ended with 3", for_good=True)


class Opened:
    """A device, and the processes that it started. `act`: what those of clients do."""

    def __init__(self, act=give_verdict, **limits):
        self.act, self.processes, self.obstacle = act, [], ""
        settings = LocalSettings(**{"build_timeout_s": 60.0, "reference_timeout_s": 60.0} | limits)
        self.device = OwnedDevice("cpu", self.open, settings, times=False, require_open=lambda: None)

    def open(self, owner):
        if owner and self.obstacle:
            raise DeviceError(self.obstacle)
        self.processes.append(Process(owner, self.act if owner else give_verdict))
        return self.processes[-1]

    def evaluate(self, owner=""):
        return self.device.evaluate(make_job(owner))


def test_a_process_serves_one_owner_and_ends_before_the_next_ones_begins():
    opened = Opened()
    for owner in ("", "alice", "alice", "bob", "", ""):
        assert opened.evaluate(owner).outcome == "wrong_value"
        assert [one.is_closed for one in opened.processes] == [True] * (len(opened.processes) - 1) + [False]
    assert [one.owner for one in opened.processes] == ["", "alice", "bob", ""]


def test_client_with_ended_processes_gets_a_problem_error():
    opened = Opened(act=lose)
    found = opened.evaluate("alice")
    assert (found.outcome, found.message.count("ended with 3")) == ("problem_error", 1)
    assert [one.owner for one in opened.processes] == ["", "alice", "alice"]
    assert opened.evaluate("").outcome == "wrong_value"


def test_device_reported_lost_by_a_client_process_stays_in_service():
    def report(process):
        raise DeviceLost("an illegal memory access was encountered", for_good=True, is_reported=True)

    opened = Opened(act=report)
    assert opened.evaluate("alice").outcome == "harness_error"
    assert opened.evaluate("").outcome == "wrong_value"


def test_a_reference_that_stops_its_process_is_not_tried_again():
    def stop(process):
        raise ReferenceStopped("reference.py: forward did not end within 4 s")

    opened = Opened(act=stop)
    found = opened.evaluate("alice")
    assert (found.outcome, found.message) == ("problem_error", "reference.py: forward did not end within 4 s")
    assert [one.is_closed for one in opened.processes] == [True, True]


def test_a_clients_process_that_ended_by_chance_is_started_again():
    acts = [lose, give_verdict]

    def act(process):
        return acts.pop(0)(process)

    opened = Opened(act=act)
    assert opened.evaluate("alice").outcome == "wrong_value"


def test_client_process_is_killed_at_its_time_limit_without_restart():
    def hang(process):
        assert process.killed.wait(30)
        lose(process)

    opened = Opened(act=hang, build_timeout_s=0.1, reference_timeout_s=0.02)
    found = opened.evaluate("alice")
    assert (found.outcome, len(opened.processes)) == ("problem_error", 2)
    assert "did not end within 0.18 s" in found.message


def test_time_for_shared_headers_is_not_counted_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(processes, "MOST_PRECOMPILING_S", 0.3)

    def precompile(process):
        process.precompiling_s = 1e6  # as a process that is not trusted may say
        began_s = time.monotonic()
        assert process.killed.wait(30)
        waits.append(time.monotonic() - began_s)
        raise DeviceLost("the evaluator process was ended by SIGKILL")

    waits = []
    opened = Opened(act=precompile, build_timeout_s=0.1, reference_timeout_s=0.02)
    assert opened.evaluate("alice").outcome == "problem_error"
    assert waits[0] >= 0.3


def test_a_trusted_process_that_ends_is_a_lost_device():
    opened = Opened()
    opened.processes[0]._act = lose
    with pytest.raises(DeviceLost):
        opened.evaluate("")


@pytest.mark.parametrize("changes", [{"subject": replace(SUBJECT, run="forged", device="none")}, {"duration_s": -1e9}])
def test_known_fields_are_not_taken_from_the_process_of_a_client(changes):
    forged = replace(
        give_verdict(None), build=BuildSummary(keys=(), cached=False, duration_s=float("nan"), strategy="", log="")
    )
    found = Opened(act=lambda _: replace(forged, **changes)).evaluate("alice")
    assert found.subject == SUBJECT
    assert 0 <= found.build.duration_s <= found.duration_s < 60


def test_a_verdict_that_contradicts_the_request_is_none():
    subject = replace(SUBJECT, baseline="compile")
    forged = Evaluation(subject=subject, outcome=Outcome.CORRECT, correctness=TRIALS, timing=TIMING)
    found = Opened(act=lambda _: forged).evaluate("alice")
    assert (found.outcome, "asked for eager" in found.message) == ("problem_error", True)


def test_failed_sandbox_start_fails_only_tasks_of_clients():
    opened = Opened()
    opened.obstacle = "no space left on device"
    found = opened.evaluate("alice")
    assert (found.outcome, opened.obstacle in found.message) == ("harness_error", True)
    assert opened.evaluate("").outcome == "wrong_value"


def test_only_builds_of_trusted_processes_are_counted():
    opened = Opened()
    for owner in ("", "alice", ""):
        opened.evaluate(owner)
    assert opened.device.build_counts == {"built": 2}
