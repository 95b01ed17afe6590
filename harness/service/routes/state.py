"""Health, queue, workers and metrics, also in KernelGYM's fields."""

from collections.abc import Mapping
from dataclasses import asdict
from time import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from harness import __version__
from harness.executors.executor import ExecutorStatus
from harness.hardware.host import available_memory_bytes
from harness.service.answers import format_time
from harness.service.queue import State
from harness.service.service import Service


def make_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["state"])

    async def read_counts() -> dict[State, int]:
        return await run_in_threadpool(service.queue.count)

    async def read_status() -> ExecutorStatus:
        return await run_in_threadpool(service.executor.status)  # may wait for a cluster

    @router.get("/health")
    async def health() -> Response:
        """Needs no token. 503 if the service evaluates nothing until it is started again; `lost` names devices out of
        service."""
        counts, executor = _name_counts(await read_counts()), await read_status()
        is_able = service.dispatcher.is_alive and not executor.failure
        record = {
            "status": "healthy" if is_able else "unhealthy",
            "version": __version__,
            "lost": executor.lost,
            "failure": executor.failure,
            "timestamp": format_time(time()),
            "gpu_status": _describe_devices(executor),
            "queue_status": counts,
            "memory_usage": {"available_bytes": available_memory_bytes()},
            "active_tasks": counts["processing"],
            "total_processed": counts["completed"] + counts["failed"],
            "uptime": time() - service.started_at,
        }
        return JSONResponse(record, 200 if is_able else 503)

    @router.get("/queue/status")
    async def queue_status() -> Response:
        return JSONResponse(_name_counts(await read_counts()))

    @router.get("/workers/status")
    async def workers_status() -> Response:
        return JSONResponse(asdict(await read_status()) | {"fidelity": service.settings.fidelity})

    @router.get("/metrics")
    async def metrics(request: Request) -> Response:
        """Prometheus's text, or JSON in KernelGYM's fields for `Accept: application/json`."""
        counts, executor = await read_counts(), await read_status()
        if "application/json" not in request.headers.get("accept", ""):
            text = service.metrics.render(counts, len(executor.devices))
            return Response(text, media_type="text/plain; version=0.0.4")
        named = _name_counts(counts)
        record = {
            "timestamp": format_time(time()),
            "performance_metrics": {"evaluated": sum(one.done for one in executor.devices)},
            "resource_metrics": _describe_devices(executor),
            "queue_metrics": named,
            "error_metrics": {"failed": named["failed"], "lost": executor.lost},
        }
        return JSONResponse(record)

    return router


def _name_counts(counts: Mapping[State, int]) -> dict[str, int]:
    failed = counts["failed"] + counts["invalid"]
    return {"pending": counts["queued"], "processing": counts["running"], "completed": counts["done"], "failed": failed}


def _describe_devices(executor: ExecutorStatus) -> dict[str, Any]:
    return {one.name: {"waiting": one.waiting, "running": one.running, "done": one.done} for one in executor.devices}
