"""Limits of connections, which hold before a token is known: their number, and the time for the head of a request."""

from __future__ import annotations

import asyncio
import resource
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from harness.service.settings import ServiceSettings

if TYPE_CHECKING:
    Base = Any
else:
    Base = AutoHTTPProtocol

FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"


class LimitedConnection(Base):  # type: ignore[misc]  # one of two classes
    """uvicorn itself closes a connection that is silent after an answer, but neither before the first request nor
    within the head of one."""

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
        """Unless it has become a WebSocket."""
        self._head_ends = None
        if not self._is_answering and self.transport.get_protocol() is self:
            self.transport.close()
