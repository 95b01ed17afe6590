"""What KernelGYM's own client does, which is not on PyPI: it posts, waits longer after 429 and 503, polls the status
until it is final, reads the results, and compares their numbers. Its models accept the answers."""

import time
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

httpx = pytest.importorskip("httpx2")

FINAL = ("completed", "failed", "timeout", "cancelled")
TRIES = 2


class Status(StrEnum):
    PENDING, PROCESSING, COMPLETED, FAILED, TIMEOUT = "pending", "processing", "completed", "failed", "timeout"


class ErrorCode(StrEnum):
    VALIDATION, COMPILATION, RUNTIME = "VALIDATION_ERROR", "COMPILATION_ERROR", "RUNTIME_ERROR"
    CORRECTNESS, TIMEOUT, SYSTEM = "CORRECTNESS_ERROR", "TIMEOUT_ERROR", "SYSTEM_ERROR"
    RESOURCE, UNKNOWN = "RESOURCE_ERROR", "UNKNOWN_ERROR"


class Result(BaseModel):
    task_id: str
    status: Status
    compiled: bool | None = None
    correctness: bool | None = None
    decoy_kernel: bool | None = None
    reference_runtime: float | None = None
    kernel_runtime: float | None = None
    speedup: float | None = None
    metadata: dict[str, Any] | None = None
    error_message: str | None = None
    error_code: ErrorCode | None = None
    submitted_at: str | None = None
    completed_at: str | None = None
    processing_time: float | None = None


class Batch(BaseModel):
    batch_id: str
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    results: list[Result]
    batch_status: Status


class Health(BaseModel):
    status: str
    timestamp: str
    gpu_status: dict[str, Any]
    queue_status: dict[str, Any]
    memory_usage: dict[str, Any]
    active_tasks: int
    total_processed: int
    uptime: float


class MetricsAnswer(BaseModel):
    timestamp: str
    performance_metrics: dict[str, Any]
    resource_metrics: dict[str, Any]
    queue_metrics: dict[str, Any]
    error_metrics: dict[str, Any]


def evaluate(address, task, limit_s=30.0):
    began_s = time.monotonic()
    with httpx.Client(timeout=60) as client:
        for attempt in range(TRIES):
            answer = client.post(f"{address}/evaluate", json=task)
            if answer.status_code not in (429, 503):
                break
            time.sleep(0.01 * 5**attempt)
        if answer.status_code not in (200, 429, 503):
            return {"status": "failed", "error_message": f"HTTP {answer.status_code}"}
        while time.monotonic() - began_s < limit_s:
            polled = client.get(f"{address}/status/{task['task_id']}")
            status = polled.json() if polled.status_code == 200 else {}
            if status.get("status") in FINAL:
                is_done = status["status"] == "completed"
                return client.get(f"{address}/results/{task['task_id']}").json() if is_done else status
            time.sleep(0.05)
    return {"status": "timeout"}


def reward(result):
    if result["status"] != "completed" or result["decoy_kernel"]:
        return -1.0
    if not result["compiled"] or not result["correctness"]:
        return -0.5
    return 1.0 if result["speedup"] >= 1.2 else 0.2


@pytest.mark.parametrize(
    ("script", "expected"),
    [("correct 2.0", 1.0), ("correct", 0.2), ("wrong_value", -0.5), ("build_error", -0.5), ("problem_error", -1.0)],
)
def test_client_without_headers_is_identified_by_its_address(open_service, gym_request_of, script, expected):
    address = open_service(tokens={"secret": "alice"}).url.replace("//", "//alice:secret@")
    assert reward(evaluate(address, gym_request_of(script))) == expected


@pytest.mark.parametrize(("script", "tried"), [("problem_error", 1), ("not_run", TRIES), ("raise", 0)])
def test_a_failed_task_is_final_for_a_client_that_polls(server, gym_request_of, script, tried):
    found = evaluate(server.url, gym_request_of(script, task_id="a task/1"))
    assert (found["status"], len(server.executor.evaluated)) == ("failed", tried)
    assert found["error_message"]


def test_the_answers_are_valid_in_kernelgyms_models(server, gym_request_of):
    scripts = ("correct 2.0", "correct", "no_code", "rejected", "timeout", "suspect", "problem_error", "not_run")
    tasks = [gym_request_of(script, task_id=script) for script in scripts]
    batch = Batch.model_validate(server.post("/evaluate/batch", {"batch_id": "b", "tasks": tasks}).body)
    assert batch.results[0] == Result.model_validate(server.get("/results/correct%202.0").body)
    Health.model_validate(server.get("/health").body)
    with httpx.Client() as client:
        found = client.get(f"{server.url}/metrics", headers={"Accept": "application/json"}).json()
        assert client.get(f"{server.url}/metrics").text.startswith("# HELP")
    assert MetricsAnswer.model_validate(found).queue_metrics["completed"] == 6
