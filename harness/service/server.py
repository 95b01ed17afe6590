"""The FastAPI application, and its server."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from harness import __version__
from harness.domain import HarnessError
from harness.service.answers import answer_error, answer_fault, refuse
from harness.service.connections import LimitedConnection
from harness.service.gate import Gate, JsonLines
from harness.service.requests import describe_errors
from harness.service.routes import kernelgym, openenv, state, v1
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
    for routes in (v1, kernelgym, openenv, state):
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
        return refuse(422, describe_errors(error.errors()))

    return app


def serve(service: Service, host: str, port: int) -> None:
    """Until SIGINT or SIGTERM."""
    log_json_lines()
    sys.setswitchinterval(SWITCH_S)
    make_server(service, host, port).run()


def make_server(service: Service, host: str, port: int) -> uvicorn.Server:
    connection = partial(LimitedConnection, settings=service.settings)
    config = uvicorn.Config(
        make_app(service),
        host=host,
        port=port,
        http=cast(Any, connection),
        ws_max_size=service.settings.max_message_bytes,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    return uvicorn.Server(config)


def log_json_lines() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("harness.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
