"""HTTP answers about tasks. A task without a verdict of its program is never answered with a score."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from fastapi.responses import JSONResponse

from harness.domain import HarnessError, Outcome, ProblemError, UsageError
from harness.service.queue import Entry, QueueFull, TaskConflict
from harness.service.service import Service

NOT_BUILT = (Outcome.NO_CODE, Outcome.BUILD_ERROR, Outcome.LOAD_ERROR)
DECOY_CHECKS = ("decoy_kernel", "unused_kernel", "no_own_kernel")
STATUS_NAMES = {"queued": "pending", "running": "processing", "done": "completed", "failed": "failed"}


def describe_task(service: Service, entry: Entry) -> dict[str, Any]:
    """`/v1`: the task, and the stored record once it is finished."""
    verdict = service.queue.read_verdict(entry.number) if entry.is_finished else None
    return {
        "task_id": entry.task,
        "state": entry.state,
        "digest": entry.digest,
        "position": service.queue.position(entry) if entry.state == "queued" else None,
        "accepted_at": _format_time(entry.accepted_at),
        "started_at": _format_time(entry.started_at),
        "finished_at": _format_time(entry.finished_at),
        "error": entry.error or None,
        "verdict": json.loads(verdict) if verdict and entry.state == "done" else None,
        "record": json.loads(verdict) if verdict and entry.state == "failed" else None,
    }


def answer_task(service: Service, entry: Entry | None) -> JSONResponse:
    if entry is None:
        return refuse(404, "no such task: it was deleted, or never accepted")
    status = {"done": 200, "failed": 503}.get(entry.state, 202)
    return JSONResponse(describe_task(service, entry), status, _retry(service) if status == 503 else None)


def describe_result(service: Service, entry: Entry) -> dict[str, Any]:
    """The fields of KernelGYM; times in ms. A field that was not measured is null."""
    processing_s = (entry.finished_at or 0.0) - (entry.started_at or 0.0) if entry.is_finished else None
    common = {
        "task_id": entry.task,
        "status": STATUS_NAMES[entry.state],
        "submitted_at": _format_time(entry.accepted_at),
        "completed_at": _format_time(entry.finished_at),
        "processing_time": processing_s,
    }
    verdict = service.queue.read_verdict(entry.number) if entry.state == "done" else None
    if verdict is None:
        code = "HARNESS_ERROR" if entry.state == "failed" else None
        return common | dict.fromkeys(_RESULT_FIELDS) | {"error_message": entry.error or None, "error_code": code}
    return common | _describe_verdict(json.loads(verdict))


_RESULT_FIELDS = (
    "compiled",
    "correctness",
    "decoy_kernel",
    "reference_runtime",
    "kernel_runtime",
    "speedup",
    "metadata",
)


def _describe_verdict(record: dict[str, Any]) -> dict[str, Any]:
    outcome, timing = Outcome(record["outcome"]), record["timing"]
    is_correct = outcome is Outcome.CORRECT
    return {
        "compiled": outcome not in NOT_BUILT,
        "correctness": is_correct,
        "decoy_kernel": any(finding["check"] in DECOY_CHECKS for finding in record["findings"]),
        "reference_runtime": timing["baseline_us"] / 1e3 if timing else None,
        "kernel_runtime": timing["candidate_us"] / 1e3 if timing and is_correct else None,
        "speedup": record["speedup"],
        "error_message": None if is_correct else record["message"],
        "error_code": None if is_correct else outcome.value.upper(),
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


def _describe_coverage(work: dict[str, Any] | None) -> dict[str, Any]:
    """KernelGYM's names; null where no GPU was profiled."""
    launched = (work and work.get("launched")) or {}  # an older harness stored none
    return {
        "num_custom_kernels": launched.get("custom"),
        "num_total_kernels": launched.get("total"),
        "custom_kernel_cuda_time_in_profiling_us": launched.get("custom_us"),
        "total_kernel_run_time_in_profiling_us": launched.get("total_us"),
    }


def retry_later(service: Service, entry: Entry) -> JSONResponse:
    """KernelGYM's routes for a task that the harness failed."""
    return JSONResponse(describe_result(service, entry), 503, _retry(service))


def refuse(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": message}, status, headers)


def answer_error(service: Service, error: HarnessError) -> JSONResponse:
    """For requests that were not accepted."""
    if isinstance(error, QueueFull):
        return refuse(429, str(error), _retry(service))
    if isinstance(error, TaskConflict):
        return refuse(409, str(error))
    if isinstance(error, UsageError | ProblemError):
        return refuse(422, str(error))
    return refuse(503, str(error), _retry(service))


def answer_fault(service: Service) -> JSONResponse:
    """For errors that nothing else answers, such as a full disk."""
    return refuse(500, "an error of the service, which its log describes", _retry(service))


def _retry(service: Service) -> dict[str, str]:
    return {"Retry-After": str(service.settings.retry_after_s)}


def _format_time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
