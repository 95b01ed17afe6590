from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from pydantic import AfterValidator, Field, field_validator, model_validator

from harness.domain import Fidelity
from harness.service.queue import NewTask
from harness.service.submission import PRIORITIES, ProgramAndProblem, Submission


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
