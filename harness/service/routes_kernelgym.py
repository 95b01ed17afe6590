"""Routes and fields of KernelGYM, for its clients."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from harness.service.answers import STATUS_NAMES, describe_result, refuse, retry_later
from harness.service.queue import Entry
from harness.service.requests import KernelGymBatch, KernelGymRequest
from harness.service.routes_v1 import delete_task
from harness.service.service import Service


def make_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["KernelGYM"])

    @router.post("/evaluate")
    async def evaluate(body: KernelGymRequest, request: Request) -> Response:
        """Waits up to `timeout` seconds; then `status` is `pending` or `processing`."""
        task = body.to_task(request.state.client, service.settings.fidelity)
        (entry,) = await service.accept([task])
        return _answer(service, await service.wait(entry, body.timeout))

    @router.post("/evaluate/batch")
    async def evaluate_batch(body: KernelGymBatch, request: Request) -> Response:
        """All or none are accepted. 503 if the harness failed one of them: submit the same batch again."""
        tasks = [one.to_task(request.state.client, service.settings.fidelity) for one in body.tasks]
        accepted = await service.accept(tasks)
        timeout_s = max(one.timeout for one in body.tasks)
        entries = await asyncio.gather(*(service.wait(entry, timeout_s) for entry in accepted))
        return _answer_batch(service, body.batch_id, [entry for entry in entries if entry is not None])

    @router.get("/status/{task_id}")
    async def status(task_id: str, request: Request) -> Response:
        entry = service.queue.find(request.state.client, task_id)
        if entry is None:
            return refuse(404, "no such task")
        if entry.state == "failed":
            return retry_later(service, entry)
        position = service.queue.position(entry) if entry.state == "queued" else None
        record = {"task_id": task_id, "status": STATUS_NAMES[entry.state], "queue_position": position}
        return JSONResponse(record)

    @router.get("/results/{task_id}")
    async def results(task_id: str, request: Request) -> Response:
        return _answer(service, service.queue.find(request.state.client, task_id))

    @router.delete("/tasks/{task_id}")
    async def delete(task_id: str, request: Request) -> Response:
        """Queued and finished tasks; 409 for a running one."""
        return await delete_task(service, request.state.client, task_id)

    return router


def _answer(service: Service, entry: Entry | None) -> Response:
    if entry is None:
        return refuse(404, "no such task")
    if entry.state == "failed":
        return retry_later(service, entry)
    return JSONResponse(describe_result(service, entry))


def _answer_batch(service: Service, batch_id: str, entries: list[Entry]) -> Response:
    failed = [entry for entry in entries if entry.state == "failed"]
    if failed:
        return retry_later(service, failed[0])
    record = {
        "batch_id": batch_id,
        "total_tasks": len(entries),
        "completed_tasks": sum(entry.state == "done" for entry in entries),
        "failed_tasks": 0,
        "batch_status": "completed" if all(entry.is_finished for entry in entries) else "processing",
        "results": [describe_result(service, entry) for entry in entries],
    }
    return JSONResponse(record)
