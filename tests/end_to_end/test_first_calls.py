"""The first call of a worker has a limit of its own."""

import time

import pytest
from shared_bench import TINY_PROBLEM

from harness.domain import Candidate, Outcome, Problem
from harness.domain.options import TimeLimits
from harness.executors.executor import Origin, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings

SLEEPS = """
import time, torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls == {call}:
            time.sleep({seconds})
        return a + b
"""


COMPILES = "# torch.compile is named, so the first call has a limit of its own\n"


def sleep_in(call, seconds):
    return COMPILES + SLEEPS.format(call=call, seconds=seconds)


@pytest.mark.slow
def test_a_first_call_may_take_longer_than_later_ones(bench):
    evaluation = bench.evaluate(sleep_in(1, 2), first_call_s=60.0, call_s=1.5)
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message


@pytest.mark.slow
def test_too_long_second_call_is_a_timeout_that_names_its_option(bench):
    source = sleep_in(2, 60).replace("        return", "        time.sleep(2)\n        return")
    evaluation = bench.evaluate(source, first_call_s=60.0, call_s=1.5)
    assert evaluation.outcome is Outcome.TIMEOUT
    assert evaluation.message.startswith("forward() did not return within 1.5 s (--call-timeout)")


def test_too_long_first_call_is_a_timeout_that_names_its_option(bench):
    evaluation = bench.evaluate(sleep_in(1, 60), first_call_s=1.0, call_s=30.0)
    assert evaluation.outcome is Outcome.TIMEOUT
    assert evaluation.message.startswith("the first call of forward() did not return within 1 s (--first-call-timeout")


def test_a_program_that_does_not_compile_has_no_longer_first_call(bench):
    source = sleep_in(1, 60).removeprefix(COMPILES)
    evaluation = bench.evaluate(source, first_call_s=60.0, call_s=1.0)
    assert evaluation.outcome is Outcome.TIMEOUT
    assert "did not return within 1 s" in evaluation.message and "--call-timeout" in evaluation.message


@pytest.mark.slow
def test_long_first_call_is_shown_with_candidate_and_duration(build_cache):
    source = Problem(name="add", suite="tiny", source=TINY_PROBLEM)
    candidate = Candidate(source=sleep_in(1, 6), language="cpp", rule="file")
    task = make_task(source, candidate, Origin(run="r", sample=3, model="m"), language="cpp")
    limits, shown = TimeLimits(first_call_s=60.0, call_s=5.0), []
    settings = LocalSettings(cache=build_cache, fidelity="correctness", attribute_work=False, limits=limits)
    with LocalExecutor(settings) as executor:
        future = executor.submit(task)
        while not future.done():
            shown.append(executor.status().waits_for)
            time.sleep(0.1)
        assert future.result().outcome is Outcome.CORRECT, future.result().message
        assert executor.status().waits_for == ""
    assert "the first call of add/3 for 3 s" in shown
    assert "the first call of add/3 for 5 s" in shown
