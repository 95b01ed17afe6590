"""KernelGYM's routes, for its clients."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from harness.domain import ProblemError, UsageError
from harness.service.answers import ask_to_retry, refuse
from harness.service.queue import Entry, NewTask
from harness.service.requests import describe_errors
from harness.service.routes.kernelgym_fields import (
    KernelGymBatch,
    KernelGymRequest,
    KernelGymWorkflow,
    describe_refusal,
    describe_result,
    describe_status,
)
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
        position = service.queue.position(entry) if entry.state == "queued" else None
        return JSONResponse(describe_status(entry) | {"queue_position": position})

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
    service: Service, requests: list[KernelGymRequest], client: str
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
