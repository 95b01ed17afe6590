"""`/v1`: the whole verdict."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response, StreamingResponse

from harness.service.answers import EvaluationRequest, answer_task, describe_task, refuse
from harness.service.queue import Entry
from harness.service.service import Service

LONGEST_WAIT_S = 60.0
EVENT_EVERY_S = 5.0

Wait = Annotated[float, Query(ge=0.0, le=LONGEST_WAIT_S, description="Seconds to wait for the verdict.")]


def make_router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["v1"])

    @router.post("/evaluations", status_code=202)
    async def submit(body: EvaluationRequest, request: Request, wait: Wait = 0.0) -> Response:
        """200 with the verdict, 202 while there is none, 409 for a task id with another program, 429 if the queue or
        the client's share is full, 503 if the harness failed: submit the same request again."""
        task = body.to_task(request.state.client, service.settings.fidelity)
        (entry,) = await service.accept([task])
        return answer_task(service, await service.wait(entry, wait))

    @router.get("/evaluations/{task_id}")
    async def read(task_id: str, request: Request, wait: Wait = 0.0) -> Response:
        entry = service.queue.find(request.state.client, task_id)
        return answer_task(service, entry and await service.wait(entry, wait))

    @router.get("/evaluations/{task_id}/events")
    async def follow(task_id: str, request: Request) -> Response:
        """Server-sent events: `state` with the task, until it is finished; the last one has the verdict."""
        entry = service.queue.find(request.state.client, task_id)
        if entry is None:
            return refuse(404, "no such task")
        return StreamingResponse(_list_events(service, entry), media_type="text/event-stream")

    @router.delete("/evaluations/{task_id}")
    async def delete(task_id: str, request: Request) -> Response:
        return await delete_task(service, request.state.client, task_id)

    return router


async def delete_task(service: Service, client: str, task_id: str) -> Response:
    state = await run_in_threadpool(service.delete, client, task_id)
    if state is None:
        return refuse(404, "no such task")
    if state == "running":
        return refuse(409, "the task is running")
    return JSONResponse({"task_id": task_id, "status": "cancelled" if state == "queued" else "deleted"})


async def _list_events(service: Service, entry: Entry) -> AsyncIterator[str]:
    current: Entry | None = entry
    while current is not None:
        yield f"event: state\ndata: {json.dumps(describe_task(service, current))}\n\n"
        if current.is_finished:
            return
        current = await service.wait(current, EVENT_EVERY_S)
