"""Repeats a failed evaluation at larger sizes, for which the candidate may be specialised."""

from __future__ import annotations

from collections.abc import Callable

from harness.domain import Finding, HarnessError, Outcome, Problem
from harness.evaluation.integrity.static_checks import screen_source
from harness.evaluation.record import EvaluationRecord
from harness.problems.shrink import EMULATED_BUDGET, PATIENT_BUDGET, REDUCED, has_own_sizes, list_milder_sizes
from harness.sandbox.failure import CandidateFailure

Evaluate = Callable[[EvaluationRecord, Problem], None]

DUE_TO_SIZES = (Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR)


def evaluate_with_larger_sizes(
    record: EvaluationRecord, problem: Problem, workload: str, source: str, evaluate: Evaluate, *, cost: int
) -> None:
    """On the reduced workload, the first correct milder reduction counts, with a warning. `cost`: see
    `LanguageRules.emulation_cost`."""
    try:
        evaluate(record, problem)
    except CandidateFailure as failure:
        may_be_sizes = workload == REDUCED and failure.outcome in DUE_TO_SIZES
        if not may_be_sizes or problem.dynamic_shapes:
            raise
        again = _find_correct(record, problem, source, evaluate, cost)
        if again is None:
            raise
        message = f"wrong at {record.sizes} ({failure.outcome}: {failure.message[:300]}); right at {again.sizes}"
        again.findings.append(Finding(check="size_specialised", severity="warning", message=message))
        record.take_over(again)


def _find_correct(
    record: EvaluationRecord, problem: Problem, source: str, evaluate: Evaluate, cost: int
) -> EvaluationRecord | None:
    wrong_at, is_own_wrong = [record.sizes], has_own_sizes(problem, REDUCED)
    for other in list_milder_sizes(problem, EMULATED_BUDGET.divided_by(cost), PATIENT_BUDGET.divided_by(cost)):
        again = EvaluationRecord(seed=record.seed, findings=list(screen_source(source)))
        try:
            evaluate(again, other)
        except CandidateFailure:
            wrong_at.append(again.sizes)
            is_own_wrong |= has_own_sizes(other, REDUCED)
            continue
        except HarnessError as error:
            _note(record, f"could not be evaluated at {again.sizes}: {error}")
            continue
        return again
    if not is_own_wrong:
        _note(record, f"wrong at {'; '.join(wrong_at)}; not evaluated at the problem's own sizes")
    return None


def _note(record: EvaluationRecord, message: str) -> None:
    record.findings.append(Finding(check="size_specialised", severity="note", message=message))
