"""Fields of KernelGYM's requests and answers; times in ms."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harness.domain import Baseline, Fidelity, Outcome, UsageError
from harness.languages import LANGUAGES
from harness.service.answers import format_time
from harness.service.queue import Entry, NewTask
from harness.service.requests import Priority, Text
from harness.service.service import Service
from harness.service.submission import PRIORITIES, Submission

MOST_IN_BATCH = 100
BASELINES: dict[str | None, Baseline] = {
    None: "eager", "pytorch": "eager", "torch": "eager", "eager": "eager",
    "torch_compile": "compile", "torch.compile": "compile", "compile": "compile",
}  # fmt: skip
NOT_BUILT = (Outcome.NO_CODE, Outcome.BUILD_ERROR, Outcome.LOAD_ERROR)
DECOY_CHECKS = ("decoy_kernel", "unused_kernel", "no_own_kernel")
STATUS_NAMES = {
    "queued": "pending",
    "running": "processing",
    "done": "completed",
    "failed": "failed",
    "invalid": "failed",
}
ERROR_CODES = {
    Outcome.NO_CODE: "VALIDATION_ERROR",
    Outcome.REJECTED: "VALIDATION_ERROR",
    Outcome.SUSPECT: "VALIDATION_ERROR",
    Outcome.BUILD_ERROR: "COMPILATION_ERROR",
    Outcome.LOAD_ERROR: "COMPILATION_ERROR",
    Outcome.RUNTIME_ERROR: "RUNTIME_ERROR",
    Outcome.WRONG_SHAPE: "CORRECTNESS_ERROR",
    Outcome.WRONG_DTYPE: "CORRECTNESS_ERROR",
    Outcome.WRONG_VALUE: "CORRECTNESS_ERROR",
    Outcome.TIMEOUT: "TIMEOUT_ERROR",
    Outcome.OUT_OF_MEMORY: "RESOURCE_ERROR",
}
NO_RESULT = dict.fromkeys(
    ("compiled", "correctness", "decoy_kernel", "reference_runtime", "kernel_runtime", "speedup", "metadata")
)
AUTOMATIC = (None, "", "auto")  # backends


def _require_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a task id has printable characters only")
    return text


class KernelGymRequest(BaseModel):
    """The evaluator chooses trials and repetitions itself; other fields of KernelGYM are accepted and ignored."""

    model_config = ConfigDict(extra="ignore")

    task_id: Annotated[Text, AfterValidator(_require_printable)] = Field(min_length=1, max_length=200)
    reference_code: Text = Field(min_length=1)
    kernel_code: Text = Field(min_length=1)
    backend: Text | None = Field(default=None, description="A language of this harness. Default: detected.")
    num_correct_trials: int = Field(default=5, ge=1, description="No effect.")
    num_perf_trials: int = Field(default=100, ge=0, description="No effect.")
    timeout: float = Field(default=300, gt=0, le=3600, description="Seconds to wait for the verdict before answering.")
    entry_point: Text = Field(default="Model", description="The reference's class; the program's is <entry_point>New.")
    reference_backend: Text | None = None
    priority: Priority = "normal"

    def to_task(self, client: str, fidelity: Fidelity) -> NewTask:
        """Raises UsageError."""
        language = next((name for name in LANGUAGES if name == self.backend), None)
        if language is None and self.backend not in AUTOMATIC:
            raise UsageError(f"no language {self.backend!r}; this harness knows {', '.join(LANGUAGES)}")
        if self.reference_backend not in BASELINES:
            raise UsageError(f"no reference_backend {self.reference_backend!r}; use pytorch or torch_compile")
        if not self.entry_point.isidentifier():
            raise UsageError(f"entry_point {self.entry_point[:100]!r} is no name of a class")
        submission = Submission(
            candidate=_name_class(self.kernel_code, "ModelNew", f"{self.entry_point}New"),
            reference=_name_class(self.reference_code, "Model", self.entry_point),
            language=language,
            baseline=BASELINES[self.reference_backend],
            fidelity=fidelity,
        )
        return NewTask(client=client, task=self.task_id, submission=submission, priority=PRIORITIES[self.priority])


class KernelGymBatch(BaseModel):
    batch_id: Text = ""
    tasks: list[KernelGymRequest] = Field(min_length=1, max_length=MOST_IN_BATCH)


class KernelGymWorkflow(BaseModel):
    """`payload`: the request of `/evaluate`."""

    workflow: Text = "kernelbench"
    task_id: Text | None = None
    payload: dict[str, Any] = Field(default_factory=dict)


def _name_class(source: str, usual: str, name: str) -> str:
    return source if name == usual else f"{source.rstrip()}\n\n{usual} = {name}\n"


def describe_result(service: Service, entry: Entry) -> dict[str, Any]:
    """A task without a verdict has no result. An unmeasured time is null, and its speedup 0, since KernelGYM's rewards
    compare it with numbers.
    """
    verdict = service.queue.read_verdict(entry.number) if entry.state == "done" else None
    described = describe_status(entry) | {
        "submitted_at": format_time(entry.accepted_at),
        "completed_at": format_time(entry.finished_at),
        "processing_time": (entry.finished_at or 0.0) - (entry.started_at or 0.0) if entry.is_finished else None,
    }
    return described | (NO_RESULT if verdict is None else _describe_verdict(json.loads(verdict)))


def describe_status(entry: Entry) -> dict[str, Any]:
    code = {"failed": "SYSTEM_ERROR", "invalid": "VALIDATION_ERROR"}.get(entry.state)
    status = {"task_id": entry.task, "status": STATUS_NAMES[entry.state]}
    return status | {"error_message": entry.error or None, "error_code": code}


def describe_refusal(task: str, message: str) -> dict[str, Any]:
    about = {"task_id": task, "status": "failed", "error_message": message, "error_code": "VALIDATION_ERROR"}
    return about | NO_RESULT


def _describe_verdict(record: dict[str, Any]) -> dict[str, Any]:
    outcome, timing = Outcome(record["outcome"]), record["timing"]
    is_correct = outcome is Outcome.CORRECT
    return {
        "compiled": outcome not in NOT_BUILT,
        "correctness": is_correct,
        "decoy_kernel": any(finding["check"] in DECOY_CHECKS for finding in record["findings"]),
        "reference_runtime": timing["baseline_us"] / 1e3 if timing else None,
        "kernel_runtime": timing["candidate_us"] / 1e3 if timing and is_correct else None,
        "speedup": _find_speedup(record),
        "error_message": None if is_correct else record["message"],
        "error_code": ERROR_CODES.get(outcome),
        "metadata": {
            "outcome": outcome.value,
            "speedup_low": timing["speedup_low"] if timing else None,
            "speedup_high": timing["speedup_high"] if timing else None,
            "timing_verdict": timing["verdict"] if timing else None,
            "baseline": record["baseline"],
            "device": record["device"],
            "workload": record["workload"],
            "language": record["language"],
            "fidelity": record["fidelity"],
            "findings": record["findings"],
            "work": record["work"],
            **_describe_coverage(record["work"]),
            "certificate": record["certificate"],
            "environment": record["environment"],
        },
    }


def _find_speedup(record: dict[str, Any]) -> float:
    """Return the interval's lower end, at most 1, for an unconfirmed time."""
    if record["speedup"] is not None:
        return float(record["speedup"])
    timing = record["timing"]
    return min(1.0, float(timing["speedup_low"])) if timing and record["outcome"] == Outcome.CORRECT else 0.0


def _describe_coverage(work: dict[str, Any] | None) -> dict[str, Any]:
    launched = (work and work.get("launched")) or {}  # an older harness stored none
    return {
        "num_custom_kernels": launched.get("custom"),
        "num_total_kernels": launched.get("total"),
        "custom_kernel_cuda_time_in_profiling_us": launched.get("custom_us"),
        "total_kernel_run_time_in_profiling_us": launched.get("total_us"),
    }
