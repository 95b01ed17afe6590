"""Reads HTTP requests for evaluations, and makes answers about tasks. A task without a verdict never gets a score."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from fastapi.responses import JSONResponse
from pydantic import AfterValidator, Field, field_validator, model_validator

from harness.domain import Fidelity, HarnessError, ProblemError, UsageError
from harness.service.queue import (
    PRIORITIES,
    WITHOUT_VERDICT,
    Entry,
    NewTask,
    ProgramAndProblem,
    QueueFull,
    Submission,
    TaskConflict,
)
from harness.service.service import Service

STATUS = {"queued": 202, "running": 202, "done": 200, "failed": 503, "invalid": 422}


def describe_task(service: Service, entry: Entry) -> dict[str, Any]:
    verdict = service.queue.read_verdict(entry.number) if entry.is_finished else None
    return {
        "task_id": entry.task,
        "state": entry.state,
        "digest": entry.digest,
        "position": service.queue.position(entry),
        "accepted_at": format_time(entry.accepted_at),
        "started_at": format_time(entry.started_at),
        "finished_at": format_time(entry.finished_at),
        "error": entry.error or None,
        "verdict": json.loads(verdict) if verdict and entry.state == "done" else None,
        "record": json.loads(verdict) if verdict and entry.state in WITHOUT_VERDICT else None,
    }


def answer_task(service: Service, entry: Entry | None) -> JSONResponse:
    if entry is None:
        return refuse(404, "no such task: it was deleted, or never accepted")
    headers = ask_to_retry(service) if entry.state == "failed" else None
    return JSONResponse(describe_task(service, entry), STATUS[entry.state], headers)


def refuse(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": message}, status, headers)


def answer_error(service: Service, error: HarnessError) -> JSONResponse:
    if isinstance(error, QueueFull):
        return refuse(429, str(error), ask_to_retry(service))
    if isinstance(error, TaskConflict):
        return refuse(409, str(error))
    if isinstance(error, UsageError | ProblemError):
        return refuse(422, str(error))
    return refuse(503, str(error), ask_to_retry(service))


def answer_fault(service: Service) -> JSONResponse:
    return refuse(500, "an error of the service, which its log describes", ask_to_retry(service))


def ask_to_retry(service: Service) -> dict[str, str]:
    return {"Retry-After": str(service.settings.retry_after_s)}


def format_time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _require_unicode(text: str | None) -> str | None:
    """JSON can escape lone surrogates, which cannot be encoded."""
    (text or "").encode()
    return text


Text = Annotated[str, AfterValidator(_require_unicode)]
Priority = Literal["low", "normal", "high"]
TaskId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_.:@=+-]{1,200}$", description="Chosen by the client; repeats are safe.")
]


def describe_errors(errors: Iterable[Mapping[str, Any]]) -> str:
    """Omit the input from pydantic's errors: it may be a whole program."""
    places = ((".".join(str(part) for part in error["loc"] if part != "body"), error["msg"]) for error in errors)
    return "; ".join(f"{place}: {message}" if place else str(message) for place, message in places)


class EvaluationRequest(ProgramAndProblem):
    task_id: TaskId = Field(default_factory=lambda: uuid4().hex)
    priority: Priority = "normal"

    _check_texts = field_validator("candidate", "completion", "problem", "suite", "reference")(_require_unicode)

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.candidate is None) == (self.completion is None):
            raise ValueError("give either candidate or completion")
        if (self.problem is None) == (self.reference is None):
            raise ValueError("give either problem or reference")
        return self

    def to_task(self, client: str, fidelity: Fidelity) -> NewTask:
        submission = Submission(**self.model_dump(exclude={"task_id", "priority"}), fidelity=fidelity)
        return NewTask(client=client, task=self.task_id, submission=submission, priority=PRIORITIES[self.priority])
