"""Health, queue, workers, metrics."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from harness import __version__
from harness.service.service import Service


def make_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["state"])

    @router.get("/health")
    async def health() -> Response:
        """Needs no token. 503 if the service takes no tasks."""
        is_alive = service.dispatcher.is_alive
        lost = service.executor.status().lost
        status = "unhealthy" if not is_alive else "degraded" if lost else "healthy"
        return JSONResponse({"status": status, "version": __version__, "lost": lost}, 200 if is_alive else 503)

    @router.get("/queue/status")
    async def queue_status() -> Response:
        counts = await run_in_threadpool(service.queue.count)
        names = {"queued": "pending", "running": "processing", "done": "completed", "failed": "failed"}
        return JSONResponse({names[state]: count for state, count in counts.items()})

    @router.get("/workers/status")
    async def workers_status() -> Response:
        status = service.executor.status()
        return JSONResponse(asdict(status) | {"fidelity": service.settings.fidelity})

    @router.get("/metrics")
    async def metrics() -> Response:
        counts = await run_in_threadpool(service.queue.count)
        return Response(service.metrics.render(counts), media_type="text/plain; version=0.0.4")

    return router
