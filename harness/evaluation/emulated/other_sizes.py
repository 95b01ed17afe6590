"""Repeats a failed evaluation at larger sizes, which the candidate may be specialised for, or at smaller ones if it was
too slow for a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.domain import CandidateFailure, Finding, HarnessError, Outcome, Problem
from harness.evaluation.emulated.findings import TIME_LIMIT, has_race_at_all_sizes
from harness.evaluation.record import EvaluationRecord
from harness.problems.shrink import (
    EMULATED_BUDGET,
    PATIENT_BUDGET,
    REDUCED,
    has_own_sizes,
    list_milder_sizes,
    reduce_problem,
)

Evaluate = Callable[[EvaluationRecord, Problem], None]

SMALLER = 16  # times less work
MOST_S = 120.0  # no other sizes are begun later
FIRST_BLOCK = "block (0, 0, 0)"
DUE_TO_SIZES = (Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR)


def evaluate_with_other_sizes(
    record: EvaluationRecord, problem: Problem, workload: str, evaluate: Evaluate, *, cost: int
) -> None:
    """Evaluate a candidate that fails on the reduced workload at milder reductions. The first correct result counts,
    with a warning. If the kernels are too slow, evaluate with less work. A race decides immediately. `cost` is
    `LanguageRules.emulation_cost`.
    """
    failure, idle = _evaluate(record, problem, evaluate), _leaves_kernels_unused(record)
    if workload == REDUCED and failure is not None and _has_slow_kernels(record, failure):
        smaller = reduce_problem(problem, EMULATED_BUDGET.divided_by(cost * SMALLER))
        failure = failure if smaller is None else _evaluate_smaller(record, smaller, evaluate, failure)
        if failure is not None:
            raise failure
        return
    if failure is not None and has_race_at_all_sizes((*record.findings, *failure.findings)):
        raise failure
    may_be_sizes = failure is not None and (failure.outcome in DUE_TO_SIZES or _is_of_launch(record, failure))
    if workload == REDUCED and (idle or may_be_sizes) and not problem.dynamic_shapes:
        what = "its kernels are not used" if failure is None or idle else f"{failure.outcome}: {failure.message[:300]}"
        again, worse = _find_correct(record, problem, evaluate, cost)
        if again is not None:
            message = f"wrong at {record.sizes} ({what}); right at {again.sizes}"
            again.findings.append(Finding(check="size_specialised", severity="warning", message=message))
            record.take_over(again)
            return
        failure = failure or worse
    if failure is not None:
        raise failure


def _evaluate(record: EvaluationRecord, problem: Problem, evaluate: Evaluate) -> CandidateFailure | None:
    try:
        evaluate(record, problem)
    except CandidateFailure as failure:
        return failure
    return None


def _evaluate_again(
    record: EvaluationRecord, problem: Problem, evaluate: Evaluate
) -> tuple[EvaluationRecord, CandidateFailure | None] | None:
    again = EvaluationRecord(seed=record.seed)
    try:
        return again, _evaluate(again, problem, evaluate)
    except HarnessError as error:
        _note(record, f"could not be evaluated at {again.sizes}: {error}")
        return None


def _has_slow_kernels(record: EvaluationRecord, failure: CandidateFailure) -> bool:
    """Return False if the first block does not end, as in an endless loop."""
    limits = [finding for finding in failure.findings if finding.check == TIME_LIMIT]
    is_endless = any(FIRST_BLOCK in finding.evidence for finding in limits)
    return failure.outcome is Outcome.TIMEOUT and "correctness" in record.phases_s and not is_endless


def _evaluate_smaller(
    record: EvaluationRecord, smaller: Problem, evaluate: Evaluate, failure: CandidateFailure
) -> CandidateFailure | None:
    tried = _evaluate_again(record, smaller, evaluate)
    if tried is None:
        return failure
    again, found = tried
    if found is not None and found.outcome is Outcome.TIMEOUT:
        return failure
    message = f"its kernels are too slow for a CPU at {record.sizes}; evaluated at {again.sizes}"
    again.findings.append(Finding(check=TIME_LIMIT, severity="note", message=message))
    record.take_over(again)
    return found


def _is_of_launch(record: EvaluationRecord, failure: CandidateFailure) -> bool:
    """Kernels that are compiled for the sizes of their arguments may not compile."""
    return failure.outcome is Outcome.BUILD_ERROR and all(build.extension is not None for build in record.builds)


def _leaves_kernels_unused(record: EvaluationRecord) -> bool:
    return any(finding.check == "decoy_kernel" for finding in record.findings)


def _find_correct(
    record: EvaluationRecord, problem: Problem, evaluate: Evaluate, cost: int
) -> tuple[EvaluationRecord | None, CandidateFailure | None]:
    idle = _leaves_kernels_unused(record)
    failed: CandidateFailure | None = None
    wrong_at, is_own_wrong = [record.sizes], has_own_sizes(problem, REDUCED)
    deadline_s = time.monotonic() + MOST_S
    for other in list_milder_sizes(problem, EMULATED_BUDGET.divided_by(cost), PATIENT_BUDGET.divided_by(cost)):
        if time.monotonic() > deadline_s:
            break
        tried = _evaluate_again(record, other, evaluate)
        if tried is None:
            continue
        again, failure = tried
        if failure is None and not (idle and _leaves_kernels_unused(again)):
            return again, None
        if failure is not None and failure.outcome in DUE_TO_SIZES:
            at = f"at {again.sizes}: {failure.message}"
            failed = failed or CandidateFailure(failure.outcome, at, failure.findings)
        if failure is not None and failure.outcome is Outcome.TIMEOUT:
            continue
        wrong_at.append(again.sizes)
        is_own_wrong |= has_own_sizes(other, REDUCED)
    if not is_own_wrong and not idle:
        _note(record, f"wrong at {'; '.join(wrong_at)}; not evaluated at the problem's own sizes")
    return None, failed


def _note(record: EvaluationRecord, message: str) -> None:
    record.findings.append(Finding(check="size_specialised", severity="note", message=message))
