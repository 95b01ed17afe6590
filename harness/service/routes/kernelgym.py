"""KernelGYM's routes and the fields of their bodies, for its clients. Times are in ms."""

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from harness.domain import Baseline, Fidelity, Outcome, ProblemError, UsageError
from harness.languages import LANGUAGES
from harness.service.answers import Priority, Text, ask_to_retry, describe_errors, format_time, refuse
from harness.service.queue import PRIORITIES, Entry, NewTask, Submission
from harness.service.routes.v1 import delete_task
from harness.service.service import Service

WORKFLOW = "kernelbench"
TASK_FIELDS = ("task_id", "status", "error_message", "error_code", "submitted_at", "completed_at")


def make_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["KernelGYM"])

    async def evaluate_one(body: KernelGymRequest, client: str) -> Entry | None:
        task = body.to_task(client, service.settings.fidelity)
        (entry,) = await service.accept([task])
        return await service.wait(entry, body.timeout)

    @router.post("/evaluate")
    async def evaluate(body: KernelGymRequest, request: Request) -> Response:
        """Waits up to `timeout` seconds; then `status` is `pending` or `processing`. 503 if the harness failed: submit
        the same request again. `status` is `failed` if the reference does."""
        return _answer(service, await evaluate_one(body, request.state.client))

    @router.post("/workflow/submit")
    async def submit_workflow(body: KernelGymWorkflow, request: Request) -> Response:
        """As `/evaluate`, with its answer as `result`."""
        if body.workflow != WORKFLOW:
            raise UsageError(f"no workflow {body.workflow[:100]!r}; this service has {WORKFLOW}")
        given = body.payload if body.task_id is None else body.payload | {"task_id": body.task_id}
        try:
            entry = await evaluate_one(KernelGymRequest.model_validate(given), request.state.client)
        except ValidationError as error:
            raise UsageError(f"payload: {describe_errors(error.errors())}") from error
        return _answer(service, entry, nests=True)

    @router.post("/evaluate/batch")
    async def evaluate_batch(body: KernelGymBatch, request: Request) -> Response:
        """A result per task; those that cannot be evaluated are `failed`. The others are all accepted, or none of
        them. The same batch again repeats what the harness failed."""
        accepted, refused = await run_in_threadpool(_sort_out, service, body.tasks, request.state.client)
        entries = await service.accept(list(accepted.values())) if accepted else []
        timeout_s = max(one.timeout for one in body.tasks)
        waited = await asyncio.gather(*(service.wait(entry, timeout_s) for entry in entries))
        results = dict(refused)
        for position, entry in zip(accepted, waited, strict=True):
            task = body.tasks[position].task_id
            deleted = describe_refusal(task, "the task was deleted")
            results[position] = deleted if entry is None else describe_result(service, entry)
        return JSONResponse(_describe_batch(body.batch_id, [results[position] for position in sorted(results)]))

    @router.get("/status/{task_id:path}")
    async def status(task_id: str, request: Request) -> Response:
        entry = service.queue.find(request.state.client, task_id)
        if entry is None:
            return refuse(404, "no such task")
        return JSONResponse(describe_status(entry) | {"queue_position": service.queue.position(entry)})

    @router.get("/results/{task_id:path}")
    async def results(task_id: str, request: Request) -> Response:
        entry = service.queue.find(request.state.client, task_id)
        return refuse(404, "no such task") if entry is None else JSONResponse(describe_result(service, entry))

    @router.delete("/tasks/{task_id:path}")
    async def delete(task_id: str, request: Request) -> Response:
        """Queued and finished tasks; 409 for a running one."""
        return await delete_task(service, request.state.client, task_id)

    return router


def _sort_out(
    service: Service, requests: "list[KernelGymRequest]", client: str
) -> tuple[dict[int, NewTask], dict[int, dict[str, Any]]]:
    """Return (tasks to accept, answers for the others), by position in the batch."""
    accepted, refused = dict[int, NewTask](), dict[int, dict[str, Any]]()
    for position, one in enumerate(requests):
        try:
            task = one.to_task(client, service.settings.fidelity)
            service.find_problem(task.submission)
            accepted[position] = task
        except (UsageError, ProblemError) as error:
            refused[position] = describe_refusal(one.task_id, str(error))
    return accepted, refused


def _answer(service: Service, entry: Entry | None, *, nests: bool = False) -> Response:
    if entry is None:
        return refuse(404, "no such task")
    result = describe_result(service, entry)
    record = {name: result[name] for name in TASK_FIELDS} | {"result": result} if nests else result
    is_fault = entry.state == "failed"
    return JSONResponse(record, 503 if is_fault else 200, ask_to_retry(service) if is_fault else None)


def _describe_batch(batch_id: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    statuses = [result["status"] for result in results]
    return {
        "batch_id": batch_id,
        "total_tasks": len(results),
        "completed_tasks": statuses.count("completed"),
        "failed_tasks": statuses.count("failed"),
        "batch_status": "completed" if set(statuses) <= {"completed", "failed"} else "processing",
        "results": results,
    }


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
    """No result without verdict. An unmeasured time is null, its speedup 0: KernelGYM's rewards compare numbers."""
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
