"""Bodies of requests."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from harness.domain import LANGUAGES, Baseline, Fidelity, Language, Precision, UsageError, WorkloadName
from harness.service.queue import NewTask
from harness.service.submission import PRIORITIES, Submission

MOST_IN_BATCH = 100
BASELINES: dict[str | None, Baseline] = {
    None: "eager", "pytorch": "eager", "torch": "eager", "eager": "eager",
    "torch_compile": "compile", "torch.compile": "compile", "compile": "compile",
}  # fmt: skip


def _require_unicode(text: str) -> str:
    """JSON can escape lone surrogates, which no encoding of text has."""
    text.encode()
    return text


Text = Annotated[str, AfterValidator(_require_unicode)]
Priority = Literal["low", "normal", "high"]
TaskId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_.:@=+-]{1,200}$", description="Chosen by the client; repeats are safe.")
]


class EvaluationRequest(BaseModel):
    """One of `candidate` (a program) and `completion` (a model's answer, from which the program is extracted); one of
    `problem` (a name in `suite`, or SUITE/NAME) and `reference` (a problem file's text, executed as trusted code)."""

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


class KernelGymRequest(BaseModel):
    """KernelGYM's fields. The evaluator chooses trials and repetitions itself; other fields of KernelGYM are accepted
    and have no effect."""

    model_config = ConfigDict(extra="ignore")

    task_id: TaskId
    reference_code: Text = Field(min_length=1)
    kernel_code: Text = Field(min_length=1)
    backend: Text | None = Field(default=None, description="A language of this harness. Default: detected.")
    num_correct_trials: int = Field(default=5, ge=1, description="No effect.")
    num_perf_trials: int = Field(default=100, ge=0, description="No effect.")
    timeout: float = Field(default=300, gt=0, le=3600, description="Seconds to wait for the verdict before answering.")
    entry_point: Literal["Model"] = "Model"
    reference_backend: Text | None = None
    priority: Priority = "normal"

    def to_task(self, client: str, fidelity: Fidelity) -> NewTask:
        """Raises UsageError."""
        language = next((name for name in LANGUAGES if name == self.backend), None)
        if language is None and self.backend is not None:
            raise UsageError(f"no language {self.backend!r}; this harness knows {', '.join(LANGUAGES)}")
        if self.reference_backend not in BASELINES:
            raise UsageError(f"no reference_backend {self.reference_backend!r}; use pytorch or torch_compile")
        submission = Submission(
            candidate=self.kernel_code,
            reference=self.reference_code,
            language=language,
            baseline=BASELINES[self.reference_backend],
            fidelity=fidelity,
        )
        return NewTask(client=client, task=self.task_id, submission=submission, priority=PRIORITIES[self.priority])


class KernelGymBatch(BaseModel):
    batch_id: str = ""
    tasks: list[KernelGymRequest] = Field(min_length=1, max_length=MOST_IN_BATCH)
