"""An output belongs to the caller until the next call: memory that a later call returns again is a note, or wrong where
the problem declares FRESH_OUTPUTS. Work memory may overwrite outputs of few calls; they must not change otherwise."""

from pathlib import Path

import pytest

from harness.evaluation.settings import TimingPlan
from harness.problems.discovery import parse_problem

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return {results}

def get_inputs():
    return [torch.randn(40, 50)]

def get_init_inputs():
    return []

{settings}
"""
CANDIDATE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.last = None
        self.ring = [torch.empty(40, 50) for _ in range(3)]

    def forward(self, x):
        self.calls += 1
{body}
"""
ONE_BUFFER = "return torch.mul(x, 2.0, out=self.ring[0])"
IN_TURN = "return torch.mul(x, 2.0, out=self.ring[self.calls % 3])"
AFTER_A_WARM_UP = """
if self.last is None:
    self.last = x * 2.0
    return self.last
return torch.mul(self.last.copy_(x), 2.0, out=self.ring[0])
"""
LATE = """
if self.last is not None and self.calls % 2:
    self.last.add_(1.0)
self.last = x * 2.0
return self.last
"""
LATE_BESIDE_A_BUFFER = """
if self.last is not None:
    self.last.add_(1.0)
self.last = x + 1.0
return torch.mul(x, 2.0, out=self.ring[0]), self.last
"""
LATE_BY_A_THREAD = """
import threading, time
result = torch.mul(x, 2.0, out=self.ring[0])
threading.Timer(0.0005, lambda: result.add_(1.0)).start()
return result
"""
IN_ITS_INPUT = "return x.mul_(2.0)"
DOUBLED, TWO = "x * 2.0", "(x * 2.0, x + 1.0)"


def evaluate(bench, body, *, results=DOUBLED, settings="", **options):
    text = PROBLEM.format(results=results, settings=settings)
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    problem = parse_problem(text, Path("doubled.py"), "mine")
    return bench.evaluate(CANDIDATE.format(body=lines), problem, attribute_work=False, **options)


def list_notes(evaluation):
    return [one.severity for one in evaluation.findings if one.check == "reuses_output"]


@pytest.mark.parametrize("body", [ONE_BUFFER, AFTER_A_WARM_UP, pytest.param(IN_TURN, marks=pytest.mark.slow)])
def test_memory_that_a_later_call_returns_again_is_noted(bench, body):
    evaluation = evaluate(bench, body)
    assert evaluation.outcome == "correct", evaluation.message
    assert list_notes(evaluation) == ["note"]


@pytest.mark.parametrize("body", [ONE_BUFFER, pytest.param(IN_TURN, marks=pytest.mark.slow)])
def test_a_problem_may_require_new_memory_from_each_call(bench, body):
    evaluation = evaluate(bench, body, settings="FRESH_OUTPUTS = True")
    assert evaluation.outcome == "wrong_value"
    assert "an output of an earlier call changed" in evaluation.message
    assert "FRESH_OUTPUTS = True: return new memory from each call" in evaluation.message


def test_new_memory_from_each_call_is_not_noted(bench):
    evaluation = evaluate(bench, "return x * 2.0", settings="FRESH_OUTPUTS = True")
    assert (evaluation.outcome, list_notes(evaluation)) == ("correct", [])


@pytest.mark.parametrize(
    ("body", "results"),
    [(LATE, DOUBLED), pytest.param(LATE_BESIDE_A_BUFFER, TWO, marks=pytest.mark.slow)],
)
def test_an_output_that_changes_while_later_ones_lie_elsewhere_is_wrong(bench, body, results):
    evaluation = evaluate(bench, body, results=results)
    assert evaluation.outcome == "wrong_value"
    assert "no later output lies in its memory" in evaluation.message


def test_a_buffer_that_changes_after_its_call_is_refused(bench):
    assert evaluate(bench, LATE_BY_A_THREAD).outcome in ("wrong_value", "suspect")


def test_an_output_in_the_memory_of_an_input_is_wrong(bench):
    evaluation = evaluate(bench, IN_ITS_INPUT)
    assert (evaluation.outcome, list_notes(evaluation)) == ("wrong_value", [])


@pytest.mark.slow
def test_a_buffer_that_is_used_only_while_timed_is_noted_or_refused(bench):
    body = "import gc\nreturn x * 2.0 if gc.isenabled() else torch.mul(x, 2.0, out=self.ring[0])"  # off while timed
    allowed = evaluate(bench, body, time=True, plan=TimingPlan(budget_s=1.0, allow_load=True))
    assert (allowed.outcome, list_notes(allowed)) == ("correct", ["note"]), allowed.message
    forbidden = evaluate(
        bench, body, settings="FRESH_OUTPUTS = True", time=True, plan=TimingPlan(budget_s=1.0, allow_load=True)
    )
    assert (forbidden.outcome, "FRESH_OUTPUTS" in forbidden.message) == ("suspect", True), forbidden.message


@pytest.mark.slow
def test_a_timed_program_with_one_buffer_is_accepted(bench):
    evaluation = evaluate(bench, ONE_BUFFER, time=True, plan=TimingPlan(budget_s=0.5, allow_load=True))
    assert (evaluation.outcome, list_notes(evaluation)) == ("correct", ["note"]), evaluation.message
    assert evaluation.timing is not None
