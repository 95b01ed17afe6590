"""Makes failures of a candidate."""

from __future__ import annotations

from typing import Any

from harness.domain import CandidateFailure, Finding, Outcome

MAX_MESSAGE = 500


def fatal_failure(outcome: Outcome, check: str, message: str) -> CandidateFailure:
    return CandidateFailure(outcome, message, (Finding(check=check, severity="fatal", message=message),))


def protocol_failure(message: str) -> CandidateFailure:
    """The worker program is trusted: only candidate code can make it break the protocol."""
    message = message[:MAX_MESSAGE]
    finding = Finding(check="protocol", severity="fatal", message=message)
    return CandidateFailure(Outcome.SUSPECT, f"the worker broke the protocol: {message}", (finding,))


def explain_failure(answer: dict[str, Any], failure: Outcome) -> CandidateFailure:
    if answer.get("wrong_outputs") is True:
        return CandidateFailure(Outcome.WRONG_SHAPE, str(answer.get("message"))[:MAX_MESSAGE])
    outcome = Outcome.OUT_OF_MEMORY if answer.get("out_of_memory") is True else failure
    message = f"{answer.get('error')}: {answer.get('message')}"[:4000]
    finding = Finding(
        check="exception", severity="fatal", message=message[:MAX_MESSAGE], evidence=str(answer.get("traceback"))[:8000]
    )
    return CandidateFailure(outcome, message, (finding,))
