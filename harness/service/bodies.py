"""Reads bodies of requests within limits of size, time and total memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Message, Receive

from harness.service.settings import ServiceSettings

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
