"""Middleware: bearer tokens, limited bodies, metrics and a log line per request."""

from __future__ import annotations

import hmac
import json
import logging
from time import perf_counter
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.service.metrics import Metrics
from harness.service.settings import ANONYMOUS, ServiceSettings

OPEN_PATHS = ("/health", "/docs", "/openapi.json")
DISCARDED = 4  # limits; of a longer body no more is read
LOG = logging.getLogger("harness.service")


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    FIELDS = ("client", "task", "outcome", "seconds", "error", "method", "path", "status", "ms")

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: getattr(record, name) for name in self.FIELDS if hasattr(record, name)}
        line = {"time": self.formatTime(record), "level": record.levelname, "event": record.getMessage(), **fields}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Gate:
    """The body is read before the application runs: a request without a token, or with a body over the limit, costs
    nothing else. The client's name becomes `request.state.client`."""

    def __init__(self, app: ASGIApp, *, settings: ServiceSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, status, is_reported = perf_counter(), 500, False

        async def note_status(message: Message) -> None:
            """Reports before the end of the answer, so that who has it finds its request counted."""
            nonlocal status, is_reported
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False) and not is_reported:
                is_reported = True
                self._report(scope, status, perf_counter() - began_s)
            await send(message)

        try:
            refusal = await self._admit(scope, receive)
            if isinstance(refusal, JSONResponse):
                await refusal(scope, receive, note_status)
            else:
                await self._app(scope, refusal, note_status)
        finally:
            if not is_reported:
                self._report(scope, status, perf_counter() - began_s)

    async def _admit(self, scope: Scope, receive: Receive) -> JSONResponse | Receive:
        """The answer that refuses the request, or the body for the application."""
        headers = Headers(scope=scope)
        client = self._find_client(headers.get("authorization", ""))
        scope.setdefault("state", {})["client"] = client
        if client is None and scope["path"] not in OPEN_PATHS:
            return _refuse(401, "a valid bearer token is needed", {"WWW-Authenticate": "Bearer"})
        limit = self._settings.max_body_bytes
        length = headers.get("content-length", "0")
        is_read = length.isdecimal() and int(length) <= DISCARDED * limit
        body = await _read_body(receive, limit) if is_read else None
        if body is None:
            message = f"the body is larger than {limit} bytes"
            return _refuse(413, message, {"Retry-After": str(self._settings.retry_after_s), "Connection": "close"})
        return _replay(body, receive)

    def _find_client(self, authorization: str) -> str | None:
        tokens = self._settings.tokens
        if not tokens:
            return ANONYMOUS
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = [name for token, name in tokens.items() if hmac.compare_digest(token.encode(), given.strip().encode())]
        return found[0] if found else None

    def _report(self, scope: Scope, status: int, seconds: float) -> None:
        route: Any = scope.get("route")
        name = getattr(route, "path", "unknown")
        self._metrics.requested(scope["method"], name, status, seconds)
        extra = {"client": scope["state"].get("client"), "method": scope["method"], "path": scope["path"]}
        LOG.info("request", extra=extra | {"status": status, "ms": round(seconds * 1e3, 2)})


def _refuse(status: int, message: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"detail": message}, status, headers)


async def _read_body(receive: Receive, limit: int) -> bytes | None:
    """None if it is over the limit. The excess is read and discarded: a client that still sends when the connection
    closes would see a reset instead of the answer."""
    body, size = bytearray(), 0
    while size <= DISCARDED * limit:
        message = await receive()
        piece = message.get("body", b"")
        size += len(piece)
        if size <= limit:
            body += piece
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return bytes(body) if size <= limit else None
    return None


def _replay(body: bytes, receive: Receive) -> Receive:
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
