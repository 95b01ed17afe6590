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
        """Needs no token. 503 if the service evaluates nothing until it is started again."""
        executor = await run_in_threadpool(service.executor.status)  # may wait for a cluster
        is_able = service.dispatcher.is_alive and not executor.failure
        status = "unhealthy" if not is_able else "degraded" if executor.lost else "healthy"
        record = {"status": status, "version": __version__, "lost": executor.lost, "failure": executor.failure}
        return JSONResponse(record, 200 if is_able else 503)

    @router.get("/queue/status")
    async def queue_status() -> Response:
        counts = await run_in_threadpool(service.queue.count)
        names = {"queued": "pending", "running": "processing", "done": "completed", "failed": "failed"}
        return JSONResponse({names[state]: count for state, count in counts.items()})

    @router.get("/workers/status")
    async def workers_status() -> Response:
        status = await run_in_threadpool(service.executor.status)
        return JSONResponse(asdict(status) | {"fidelity": service.settings.fidelity})

    @router.get("/metrics")
    async def metrics() -> Response:
        counts = await run_in_threadpool(service.queue.count)
        status = await run_in_threadpool(service.executor.status)
        return Response(service.metrics.render(counts, len(status.devices)), media_type="text/plain; version=0.0.4")

    return router
