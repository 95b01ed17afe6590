"""The FastAPI application, and its server."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from harness import __version__
from harness.domain import HarnessError, UsageError
from harness.domain.files import explain_failure
from harness.service.answers import answer_error, answer_fault, refuse
from harness.service.gate import Gate, JsonLines
from harness.service.requests import describe_errors
from harness.service.routes import kernelgym, openenv, state, v1
from harness.service.service import Service
from harness.service.settings import ServiceSettings

if TYPE_CHECKING:
    Base = Any
else:
    Base = AutoHTTPProtocol


FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"


class LimitedConnection(Base):  # type: ignore[misc]  # one of two classes
    """Closes connections that are silent before or during a request's head; uvicorn closes only those silent after an
    answer.
    """

    def __init__(self, *, settings: ServiceSettings, **given: Any) -> None:
        super().__init__(**given)
        self._head_s = settings.head_s
        self._most = min(settings.max_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._head_ends: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.write(FULL)
            transport.close()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._stop_waiting()
        elif self._head_ends is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_ends = self.loop.call_later(self._head_s, self._close_silent)

    def _stop_waiting(self) -> None:
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None

    def _close_silent(self) -> None:
        self._head_ends = None
        if not self._is_answering and self.transport.get_protocol() is self:
            self.transport.close()


SHUTDOWN_S = 5
SWITCH_S = 0.001  # the event loop waits as long for threads that store verdicts


def make_app(service: Service) -> FastAPI:
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
    """Raises UsageError for an address that cannot be listened on."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        reason = explain_failure(error)
        raise UsageError(
            f"cannot listen on port {port} of {host}: {reason}; choose another one with --port, or 0 for any"
        ) from error
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
