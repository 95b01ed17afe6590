"""Middleware that checks tokens, limits bodies, counts metrics and logs requests."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.service.metrics import Metrics
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
    """Reads the body before the application runs, so requests without a token or with a too large body cost little. The
    client's name becomes `request.state.client`.
    """

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
    """Return a bearer token, or the password of an address such as http://alice:TOKEN@host, for clients without another
    setting.
    """
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
    """Read the rest of the body: a client that still sends when the connection closes would get a reset instead of the
    answer.
    """
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
