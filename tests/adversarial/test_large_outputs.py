"""Large outputs are compared with the reference's own first; the truth is computed where those do not settle it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.evaluation.correctness import reference
from harness.problems.discovery import parse_problem
from harness.tensors import outputs

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(300, 700)]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        {body}
"""
RIGHT = "return torch.softmax(x, dim=-1)"
ROUNDED = "return torch.softmax(x, dim=-1) * (1 + {error})"
OTHER_SUM = "y = torch.exp(x - x.amax(-1, keepdim=True)); return y / y.sum(-1, keepdim=True)"
OTHER_EACH_TIME = "return torch.softmax(x, dim=-1) * (1 + 2e-7 * (self.calls % 4))"
LATER_WRONG = "y = torch.softmax(x, dim=-1); y[-1, 5:9] = y[-1, 5:9] * (1 if self.calls < 2 else 1.01); return y"
LATER_NAN = "y = torch.softmax(x, dim=-1); y[7, 7] = float('nan') if self.calls > 1 else y[7, 7]; return y"


@pytest.fixture
def evaluate(bench, monkeypatch):
    monkeypatch.setattr(reference, "LARGE_BYTES", 100_000)
    monkeypatch.setattr(outputs, "KEPT_BYTES", 99_999)
    counted = []
    find = reference.Reference.truth_of

    def count(self, *args, **more):
        counted.append(1)
        return find(self, *args, **more)

    monkeypatch.setattr(reference.Reference, "truth_of", count)

    def run(body):
        counted.clear()
        evaluation = bench.evaluate(CANDIDATE.format(body=body), PROBLEM, attribute_work=False)
        return evaluation, len(counted)

    return run


@pytest.mark.parametrize("body", [RIGHT, OTHER_SUM, OTHER_EACH_TIME])
@pytest.mark.quick(1)
def test_the_truth_of_a_right_program_is_computed_for_its_first_call(evaluate, body):
    evaluation, truths = evaluate(body)
    assert evaluation.outcome == "correct", evaluation.message
    first, *others = evaluation.correctness.trials
    assert first.worst_ratio is not None
    assert len(others) > 3
    assert all(trial.passed and trial.worst_ratio is None and trial.elements == 210_000 for trial in others)
    near_a_maximum = sum(trial.distribution == "shifted" for trial in others)  # one rounding moves these outputs most
    assert 1 <= truths <= 1 + near_a_maximum
    assert evaluation.correctness.truth == "float64"


def test_an_error_between_surely_right_and_wrong_is_measured_against_the_truth(evaluate):
    evaluation, truths = evaluate(ROUNDED.format(error=2e-6))
    assert evaluation.outcome == "correct", evaluation.message
    given = [trial for trial in evaluation.correctness.trials if trial.distribution == "as_given"]
    assert all(trial.whole_ratio > 0.5 for trial in given)
    assert truths >= len(given) > 1


@pytest.mark.parametrize("body", [ROUNDED.format(error=3e-4), LATER_WRONG, LATER_NAN])
def test_a_wrong_program_is_caught_in_large_outputs(evaluate, body):
    evaluation, _ = evaluate(body)
    assert evaluation.outcome == "wrong_value"
    assert "elements wrong" in evaluation.message


@pytest.mark.usefixtures("evaluate")
@pytest.mark.parametrize(("rtol", "rated"), [(1e-3, 1), (0.2, None)])
def test_the_truth_decides_where_a_declared_tolerance_is_wide(bench, rtol, rated):
    declared = parse_problem(PROBLEM + f"\nTOLERANCE = {{'atol': 1e-3, 'rtol': {rtol}}}\n", Path("declared.py"), "tiny")
    found = bench.evaluate(CANDIDATE.format(body=RIGHT), declared, attribute_work=False)
    assert found.outcome == "correct", found.message
    trials = found.correctness.trials
    assert sum(trial.worst_ratio is not None for trial in trials) == (rated or len(trials))


def test_countable_outputs_must_be_equal(bench, evaluate):
    source = PROBLEM.replace("torch.softmax(x, dim=-1)", "torch.relu(x)") + "\nDISTRIBUTIONS = ('integers',)\n"
    body = "y = torch.relu(x); return y + 1e-6 * (y == 1) if self.calls > 1 else y"
    found = bench.evaluate(CANDIDATE.format(body=body), parse_problem(source, Path("steps.py"), "tiny"))
    assert (found.outcome, found.correctness.trials[-1].distribution) == ("wrong_value", "integers")


NORM = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(700)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        {body}
        return self.norm(x)
"""
HEAD, _, TAIL = PROBLEM.partition(
    "class Model(nn.Module):\n    def forward(self, x):\n        return torch.softmax(x, dim=-1)\n"
)
STOPS_UPDATING = "self.norm.momentum = 0.1 if self.calls < 2 else 0.11"


@pytest.mark.parametrize(("body", "outcome"), [("", "correct"), (STOPS_UPDATING, "wrong_value")])
@pytest.mark.usefixtures("evaluate")
def test_state_is_compared_with_the_references_own_as_outputs_are(bench, body, outcome):
    source = HEAD + NORM.format(name="Model", body="") + TAIL + "\nTRAINING = True\n"
    problem = parse_problem(source, Path("norm.py"), "tiny")
    found = bench.evaluate(HEAD + NORM.format(name="ModelNew", body=body), problem, attribute_work=False)
    assert found.outcome == outcome, found.message
    trials = [trial for trial in found.correctness.trials if trial.distribution == "as_given"]
    assert trials[0].worst_ratio is not None
    assert outcome != "correct" or all(trial.worst_ratio is None for trial in trials[1:])
