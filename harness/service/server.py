"""The FastAPI application, its middleware (tokens, limits of bodies, metrics, log), and its server."""

import asyncio
import base64
import binascii
import hmac
import json
import logging
import resource
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from harness import __version__
from harness.domain import HarnessError, UsageError
from harness.domain.files import raising
from harness.service.answers import answer_error, answer_fault, describe_errors, refuse
from harness.service.routes import kernelgym, openenv, state, v1
from harness.service.service import Metrics, Service
from harness.service.settings import ANONYMOUS, ServiceSettings

OPEN_PATHS = ("/health", "/docs", "/openapi.json")
LOG = logging.getLogger("harness.service")


class JsonLines(logging.Formatter):
    FIELDS = ("client", "task", "outcome", "seconds", "error", "method", "path", "status", "ms")

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: getattr(record, name) for name in self.FIELDS if hasattr(record, name)}
        line = {"time": self.formatTime(record), "level": record.levelname, "event": record.getMessage(), **fields}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Gate:
    """Reads the body first: requests without token, or too large, cost little. `request.state.client` is the name."""

    def __init__(self, app: ASGIApp, *, settings: ServiceSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._bodies = Bodies(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        client = self._find_client(Headers(scope=scope).get("authorization", ""))
        scope.setdefault("state", {})["client"] = client
        is_refused = client is None and scope["path"] not in OPEN_PATHS
        if scope["type"] == "websocket":
            await (_ask_for_token() if is_refused else self._app)(scope, receive, send)
        else:
            await self._answer(scope, receive, send, is_refused=is_refused)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, *, is_refused: bool) -> None:
        began_s, status, is_reported = perf_counter(), 500, False

        async def note_status(message: Message) -> None:
            """Count the request before the end of the answer, so that the client finds it counted."""
            nonlocal status, is_reported
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False) and not is_reported:
                is_reported = True
                self._report(scope, status, perf_counter() - began_s)
            await send(message)

        try:
            if is_refused:
                await _refuse(_ask_for_token(), scope, receive, note_status)
            else:
                await self._pass_on(scope, receive, note_status)
        finally:
            if not is_reported:
                self._report(scope, status, perf_counter() - began_s)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = Headers(scope=scope).get("content-length", "0")
        try:
            async with self._bodies.hold(receive, int(length) if length.isdecimal() else 0) as body:
                await self._app(scope, body, send)
        except BodyRefused as refusal:
            again = {} if refusal.status == 413 else {"Retry-After": str(self._settings.retry_after_s)}
            answer = JSONResponse({"detail": str(refusal)}, refusal.status, {"Connection": "close", **again})
            await _refuse(answer, scope, receive, send)

    def _find_client(self, authorization: str) -> str | None:
        tokens, given = self._settings.tokens, _read_token(authorization)
        if not tokens:
            return ANONYMOUS
        found = [name for token, name in tokens.items() if hmac.compare_digest(token.encode(), given)]
        return found[0] if found else None

    def _report(self, scope: Scope, status: int, seconds: float) -> None:
        route: Any = scope.get("route")
        name = getattr(route, "path", "unknown")
        self._metrics.requested(scope["method"], name, status, seconds)
        extra = {"client": scope["state"].get("client"), "method": scope["method"], "path": scope["path"]}
        LOG.info("request", extra=extra | {"status": status, "ms": round(seconds * 1e3, 2)})


def _read_token(authorization: str) -> bytes:
    """Return a bearer token, or the password of an address such as http://alice:TOKEN@host, for simple clients."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.strip().encode()
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(given, validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""


def _ask_for_token() -> JSONResponse:
    message = "a valid token is needed: Authorization: Bearer TOKEN, or an address with it, http://NAME:TOKEN@HOST"
    return JSONResponse({"detail": message}, 401, {"WWW-Authenticate": "Bearer"})


async def _refuse(answer: JSONResponse, scope: Scope, receive: Receive, send: Send) -> None:
    async def send_unfinished(message: Message) -> None:
        if message["type"] == "http.response.body":
            message["more_body"] = True
        await send(message)

    await answer(scope, receive, send_unfinished)
    await discard(receive)
    await send({"type": "http.response.body", "body": b""})


DISCARD_S, DISCARDED_BYTES = 5.0, 128 * 2**20  # of the body of a refused request


class BodyRefused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """A body counts until its request is answered, since the application keeps it until then."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._held_bytes = 0

    @asynccontextmanager
    async def hold(self, receive: Receive, length: int) -> AsyncIterator[Receive]:
        """Raises BodyRefused."""
        limit, time_s, body = self._settings.max_body_bytes, self._settings.body_s, bytearray()
        try:
            if length > limit:
                raise BodyRefused(413, f"the body is larger than {limit} bytes")
            try:
                async with asyncio.timeout(time_s):
                    await self._read(body, receive)
            except TimeoutError as error:
                raise BodyRefused(408, f"the body did not arrive within {time_s:g} s") from error
            yield _replay(body, receive)
        finally:
            self._held_bytes -= len(body)

    async def _read(self, body: bytearray, receive: Receive) -> None:
        limit, total = self._settings.max_body_bytes, self._settings.max_bodies_bytes
        while True:
            message = await receive()
            piece = message.get("body", b"")
            if len(body) + len(piece) > limit:
                raise BodyRefused(413, f"the body is larger than {limit} bytes")
            if self._held_bytes + len(piece) > total:
                raise BodyRefused(503, f"requests of {total} bytes are being answered, as many as allowed")
            self._held_bytes += len(piece)
            body += piece
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                return


async def discard(receive: Receive) -> None:
    """Read the rest: a client that still sends when the connection closes would get a reset instead of the answer."""
    size, more = 0, True
    try:
        async with asyncio.timeout(DISCARD_S):
            while more and size < DISCARDED_BYTES:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
                size += len(message.get("body", b""))
    except TimeoutError:
        return


def _replay(body: bytearray, receive: Receive) -> Receive:
    first: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


if TYPE_CHECKING:
    Base = Any
else:
    Base = AutoHTTPProtocol

FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"


class LimitedConnection(Base):  # type: ignore[misc]  # one of two classes
    """Closes connections that are silent before or during a request's head; uvicorn closes only others."""

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
    remedy = "; choose another one with --port, or 0 for any"
    with (
        raising(UsageError, f"listen on port {port} of {host}", remedy),
        socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial,
    ):
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind((host, port))
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("harness.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
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
