"""Runs and repeats one evaluation, and converts errors to outcomes."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable, Sequence

from harness.domain import BuildToolError, Finding, HarnessError, Outcome, ProblemError, ProblemTooLarge
from harness.evaluation.allocation_failure import forget_frames
from harness.evaluation.record import EvaluationRecord
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.memory_limits import is_out_of_memory

Attempt = Callable[[EvaluationRecord], None]  # raises on any outcome but correct
Repetition = Callable[[EvaluationRecord, Outcome, str], EvaluationRecord | None]  # the record of another attempt

DISTURBED = ("device_busy", "pause")  # checks that a busy machine may fail


def run_attempts(
    record: EvaluationRecord, attempt: Attempt, device: Device | None, repetitions: Sequence[Repetition]
) -> tuple[EvaluationRecord, Outcome, str]:
    """Return record, outcome and message of the last attempt. Each repetition may request one more."""
    outcome, message = _run_attempt(record, attempt, device)
    for repetition in repetitions:
        again = repetition(record, outcome, message)
        if again is not None:
            record = again
            outcome, message = _run_attempt(record, attempt, device)
    return record, outcome, message


def repeat_if_disturbed(record: EvaluationRecord, outcome: Outcome, message: str) -> EvaluationRecord | None:
    """Use a new seed after a suspicion that a busy machine may cause."""
    fatal = [finding.check for finding in record.findings if finding.severity == "fatal"]
    if outcome is not Outcome.SUSPECT or not any(check in DISTURBED for check in fatal):
        return None
    note = Finding(check="repeated", severity="note", message=f"evaluated a second time: {message[:300]}")
    return EvaluationRecord(seed=secrets.randbits(62), findings=[note])


def repeat_with_less_memory(record: EvaluationRecord, outcome: Outcome, message: str) -> EvaluationRecord | None:
    is_planned = record.is_short and record.thrift == "planned"
    return record.repeat_smaller(outcome, message) if is_planned else None


def _run_attempt(record: EvaluationRecord, attempt: Attempt, device: Device | None) -> tuple[Outcome, str]:
    try:
        attempt(record)
        return Outcome.CORRECT, ""
    except Exception as error:  # noqa: BLE001 - an error of the harness must not end later evaluations
        outcome, message = _explain(record, error)
        forget_frames(error)
    finally:
        if device is not None:
            device.release_memory()
    return outcome, message


def _explain(record: EvaluationRecord, error: Exception) -> tuple[Outcome, str]:
    if isinstance(error, CandidateFailure):
        record.findings += error.findings
        record.is_short = error.outcome is Outcome.OUT_OF_MEMORY
        return error.outcome, error.message
    record.is_short = is_out_of_memory(error)
    if isinstance(error, ProblemTooLarge | BuildToolError):
        return Outcome.NOT_RUN, str(error)
    if record.is_short:
        return Outcome.NOT_RUN, f"the evaluator ran out of device memory ({record.memory}): {error}"
    if isinstance(error, ProblemError):
        return Outcome.PROBLEM_ERROR, str(error)
    if isinstance(error, HarnessError):
        return Outcome.HARNESS_ERROR, str(error)
    message = f"unexpected {type(error).__name__}: {error}"
    evidence = "".join(traceback.format_exception(error))[-8000:]
    record.findings.append(Finding(check="harness", severity="fatal", message=message, evidence=evidence))
    return Outcome.HARNESS_ERROR, message
