"""Candidates that fail, leave their kernels unused, or are too slow at reduced sizes."""

import pytest

from harness.domain import CandidateFailure, Finding, Outcome, Problem
from harness.evaluation import method
from harness.evaluation.method import evaluate_with_other_sizes
from harness.evaluation.record import EvaluationRecord
from harness.problems.shrink import describe_sizes, fit_problem

SOURCE = """
import torch
from torch import nn
rows, columns = 4096, 4096
class Model(nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return []
"""
DECOY = Finding(check="decoy_kernel", severity="warning", message="the custom kernels do not affect the result")


def evaluate_slowly(fast_rows, found, block="(3, 0, 0)"):
    """With kernels that take too long above so many rows. Returns what was evaluated, and the record."""
    problem = fit_problem(Problem(suite="tiny", name="add", source=SOURCE), 10)
    record, tried = EvaluationRecord(seed=1), []
    slow = Finding(check="time_limit", severity="warning", message="slow", evidence=f"in kernel k, block {block}")

    def evaluate(attempt, resized):
        attempt.sizes = describe_sizes(resized, "reduced")
        attempt.phases_s["correctness"] = 60.0
        tried.append(dict(resized.workload("reduced").overrides)["rows"])
        if tried[-1] > fast_rows:
            raise CandidateFailure(Outcome.TIMEOUT, "too slow", (slow,))
        if found is not None:
            raise CandidateFailure(found, "wrong")

    failure = None
    try:
        evaluate_with_other_sizes(record, problem, "reduced", evaluate, cost=10)
    except CandidateFailure as caught:
        failure = caught.outcome
    return tried, failure, record


@pytest.mark.parametrize("found", [None, Outcome.WRONG_VALUE])
def test_too_slow_kernels_are_evaluated_with_a_sixteenth_of_the_work(found):
    (first, second), failure, record = evaluate_slowly(200, found)
    assert first > 200 >= second > 1
    assert failure is found
    assert f"rows={second}" in record.sizes
    (finding,) = record.findings
    assert finding.check == "time_limit" and f"rows={first}; evaluated at " in finding.message


def test_kernels_that_stay_too_slow_or_end_nowhere_are_out_of_time():
    tried, failure, _ = evaluate_slowly(1, None)
    assert (len(tried), failure) == (2, Outcome.TIMEOUT)
    tried, failure, _ = evaluate_slowly(1, None, block="(0, 0, 0)")
    assert (len(tried), failure) == (1, Outcome.TIMEOUT)


def evaluate_with(verdict):
    """`verdict`: for whether the number of columns is even, "right", "idle" or an outcome."""
    problem = fit_problem(Problem(suite="tiny", name="add", source=SOURCE), 10)
    record = EvaluationRecord(seed=1)

    def evaluate(attempt, resized):
        attempt.sizes = describe_sizes(resized, "reduced")
        found = verdict(dict(resized.workload("reduced").overrides)["columns"] % 2 == 0)
        attempt.findings += [DECOY] if found == "idle" else []
        if isinstance(found, Outcome):
            raise CandidateFailure(found, "wrong")

    evaluate_with_other_sizes(record, problem, "reduced", evaluate, cost=10)
    return [finding.check for finding in record.findings]


def test_kernels_that_only_run_for_even_sizes_are_evaluated_there():
    assert evaluate_with(lambda even: "right" if even else "idle") == ["size_specialised"]


def test_kernels_for_even_sizes_only_can_be_wrong():
    with pytest.raises(CandidateFailure) as caught:
        evaluate_with(lambda even: Outcome.WRONG_VALUE if even else "idle")
    assert caught.value.outcome is Outcome.WRONG_VALUE


def test_kernels_that_run_at_no_size_leave_the_first_verdict():
    assert "decoy_kernel" in evaluate_with(lambda _: "idle")


def test_no_other_sizes_are_begun_when_too_much_time_is_spent(monkeypatch):
    monkeypatch.setattr(method, "MOST_S", -1.0)
    asked = []

    def evaluate(even):
        asked.append(even)
        return Outcome.WRONG_VALUE

    with pytest.raises(CandidateFailure):
        evaluate_with(evaluate)
    assert asked == [False]


RACE = Finding(check="shared_race", severity="warning", message="cuda.cu:9: error: a race", evidence="in kernel k")
BOUNDS = Finding(check="global_bounds", severity="warning", message="cuda.cu:5: error: beyond", evidence="in kernel k")


@pytest.mark.parametrize(("findings", "sizes"), [((RACE,), 1), ((RACE, BOUNDS), 3), ((), 3)])
def test_shared_memory_race_decides_unless_sizes_may_cause_it(findings, sizes):
    problem, record, tried = (
        fit_problem(Problem(suite="tiny", name="add", source=SOURCE), 1),
        EvaluationRecord(seed=1),
        [],
    )

    def evaluate(attempt, resized):
        tried.append(resized.workload("reduced").overrides)
        attempt.findings += findings
        raise CandidateFailure(Outcome.WRONG_VALUE, "wrong")

    with pytest.raises(CandidateFailure):
        evaluate_with_other_sizes(record, problem, "reduced", evaluate, cost=1)
    assert min(len(tried), 3) >= min(sizes, 2) and (len(tried) == 1) == (sizes == 1)
