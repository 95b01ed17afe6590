from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from harness.domain import Baseline, Fidelity, Language, Precision, WorkloadName
from harness.service.queue import NewTask
from harness.service.submission import PRIORITIES, Submission


def _require_unicode(text: str) -> str:
    """JSON can escape lone surrogates, which cannot be encoded."""
    text.encode()
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


class EvaluationRequest(BaseModel):
    """One of `candidate` (a program) and `completion` (a model's answer, from which the program is extracted); one of
    `problem` (a name in `suite`, or SUITE/NAME) and `reference` (a problem file's text)."""

    model_config = ConfigDict(extra="forbid")

    task_id: TaskId = Field(default_factory=lambda: uuid4().hex)
    candidate: Text | None = None
    completion: Text | None = None
    problem: Text | None = None
    suite: Text = "core"
    reference: Text | None = None
    language: Language | None = Field(default=None, description="Default: detected from the program.")
    workload: WorkloadName | None = Field(default=None, description="Default: full; if emulated, small or reduced.")
    baseline: Baseline = "eager"
    dtype: Precision | None = Field(default=None, description="Of inputs and weights. Default: as in the problem.")
    requires_kernel: bool | None = Field(
        default=None,
        description="Reject programs without a custom kernel. Default: as the suite; true for a reference.",
    )
    priority: Priority = "normal"

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.candidate is None) == (self.completion is None):
            raise ValueError("give either candidate or completion")
        if (self.problem is None) == (self.reference is None):
            raise ValueError("give either problem or reference")
        return self

    def to_task(self, client: str, fidelity: Fidelity) -> NewTask:
        fields = self.model_dump(exclude={"task_id", "priority"})
        submission = Submission(**fields, fidelity=fidelity)
        return NewTask(client=client, task=self.task_id, submission=submission, priority=PRIORITIES[self.priority])
