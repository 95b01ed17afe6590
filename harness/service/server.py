"""The FastAPI application, and its server."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from harness import __version__
from harness.domain import HarnessError
from harness.service import routes_kernelgym, routes_openenv, routes_state, routes_v1
from harness.service.answers import answer_error, answer_fault, refuse
from harness.service.gate import Gate, JsonLines
from harness.service.service import Service

SHUTDOWN_S = 5
SWITCH_S = 0.001  # the event loop waits as long for threads that store verdicts


def make_app(service: Service) -> FastAPI:
    """Starts the service with the application, and stops it with the application."""

    @asynccontextmanager
    async def run(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        service.stop()

    app = FastAPI(title="kernel-harness", version=__version__, lifespan=run, redoc_url=None)
    app.add_middleware(Gate, settings=service.settings, metrics=service.metrics)
    for routes in (routes_v1, routes_kernelgym, routes_openenv, routes_state):
        app.include_router(routes.make_router(service))

    @app.exception_handler(HarnessError)
    async def answer_harness_error(_: Request, error: HarnessError) -> Response:
        return answer_error(service, error)

    @app.exception_handler(Exception)
    async def answer_unexpected(_: Request, error: Exception) -> Response:
        return answer_fault(service)

    @app.exception_handler(RequestValidationError)
    async def answer_invalid(request: Request, error: RequestValidationError) -> Response:
        if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
            return refuse(422, "the body must be JSON, with the header Content-Type: application/json")
        return refuse(422, "; ".join(map(_describe_error, error.errors())))

    return app


def serve(service: Service, host: str, port: int) -> None:
    """Until SIGINT or SIGTERM."""
    log_json_lines()
    sys.setswitchinterval(SWITCH_S)
    config = uvicorn.Config(
        make_app(service), host=host, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=SHUTDOWN_S
    )
    uvicorn.Server(config).run()


def log_json_lines() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("harness.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def _describe_error(error: dict[str, Any]) -> str:
    """Without the input, which may be a whole program."""
    where = ".".join(str(part) for part in error["loc"] if part != "body")
    return f"{where}: {error['msg']}" if where else str(error["msg"])
