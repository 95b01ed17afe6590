"""A candidate is timed against several baselines; those that fail or are wrong are named and not timed against."""

import pytest

from harness.domain import TimedBaseline
from harness.evaluation.settings import TimingPlan

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(256))

    def forward(self, x):
        return x * self.scale


class Library(Model):
    def forward(self, x):
        return torch.mul(x, self.scale)


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return []
"""
OWN = PROBLEM.partition("class Library")[0].replace("class Model", "class ModelNew")
PLAN = TimingPlan(budget_s=0.3, min_blocks=5, max_blocks=8, attempts=1, allow_load=True)
LIBRARY = TimedBaseline(name="library", entry="Library")


def own(change, by):
    assert change in OWN
    return TimedBaseline(name="mine@1", entry="ModelNew", source=OWN.replace(change, by))


def evaluate(bench, baselines, problem=PROBLEM):
    fields = {"plan": PLAN, "language": "torch", "attribute_work": False}
    return bench.evaluate(OWN, problem, time=True, baselines=baselines, **fields)


@pytest.fixture(scope="module")
def evaluated(bench):
    baselines = (
        TimedBaseline(),
        LIBRARY,
        own("x * self.scale", "x + self.scale"),
        TimedBaseline(name="eager-tf32"),
        own("return x", "raise ValueError('too bad'); return x"),
    )
    return evaluate(bench, baselines)


def test_each_baseline_that_works_is_timed_in_its_own_measurement(evaluated):
    assert evaluated.outcome == "correct", evaluated.message
    assert evaluated.measured_baselines == "eager,library"
    assert evaluated.fastest is None or evaluated.fastest.baseline in ("eager", "library")


def test_baselines_that_fail_or_are_wrong_are_named_and_not_timed_against(evaluated):
    reasons = [one.reason for one in evaluated.further if one.timing is None]
    assert "its outputs are wrong" in reasons[0]
    assert "has no TF32 units" in reasons[1]
    assert "runtime_error" in reasons[2]
    assert "too bad" in reasons[2]
    found = [one for one in evaluated.findings if one.check == "baseline"]
    assert [one.severity for one in found] == ["warning", "note", "warning"]
    assert [one.message.startswith("not timed against ") for one in found] == [True] * 3


@pytest.mark.slow
def test_a_first_baseline_that_fails_leaves_a_correct_program_untimed(bench):
    baselines = (own("return x", "import nothing_like_it; return x"), LIBRARY)
    found = evaluate(bench, baselines)
    assert (found.outcome, found.timing, found.measured_baselines) == ("correct", None, "library")


@pytest.mark.slow
def test_without_a_library_class_the_library_is_unavailable(bench):
    problem = PROBLEM.replace("class Library(Model)", "class Library(nn.Module)")
    found = evaluate(bench, (LIBRARY,), problem)
    assert found.timing is None
    assert [one.message for one in found.findings if one.check == "baseline"] == [
        "not timed against library: the problem's file has no class Library(Model)"
    ]
