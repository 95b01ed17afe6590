"""Framed JSON messages, with file descriptors, and single-byte signals, over a Unix stream socket.

A frame is an 8-byte header (body length, number of descriptors; both big-endian 32 bits) and a JSON object in
UTF-8. Every receive has a deadline and a size limit; anything else than a well-formed object is a WireError.
Never pickle. The message *meaning* is checked by whoever asked.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from harness.domain import WireError, WorkerLost, WorkerTimeout

_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")
_HEADER = struct.Struct(">II")
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_DESCRIPTORS = 8
CHECK_EVERY_S = 0.05
GO, REST = b"g", b"r"  # signals: single bytes outside of any frame, sent while the other end waits for one

Message = dict[str, Any]
T = TypeVar("T")


class Channel:
    """One end of a line. Not thread-safe: one conversation at a time."""

    def __init__(self, end: socket.socket, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._socket = end
        self._max_body_bytes = max_body_bytes

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message, descriptors: Sequence[int] = (), *, timeout_s: float | None = None) -> None:
        """Sends one message. Raises WorkerLost if the other end is gone, WorkerTimeout if it does not read."""
        # Text from a candidate may hold half a surrogate pair, which no file and no database would take.
        body = _ENCODER.encode(message).encode(errors="replace")
        self._socket.settimeout(timeout_s)
        frame = _HEADER.pack(len(body), len(descriptors)) + body
        try:
            # The first send carries the descriptors; the kernel may take only a part of a long frame.
            sent = socket.send_fds(self._socket, [frame], list(descriptors)) if descriptors else 0
            self._socket.sendall(frame[sent:])
        except TimeoutError as error:
            raise WorkerTimeout(f"the other end did not read a message within {timeout_s} s") from error
        except OSError as error:
            raise WorkerLost(f"the line was closed while sending: {error}") from error

    def receive(
        self,
        *,
        timeout_s: float | None = None,
        while_waiting: Callable[[], None] | None = None,
        on_arrival: Callable[[], None] | None = None,
    ) -> tuple[Message, list[int]]:
        """The next message and its descriptors (owned by the caller). `while_waiting` is called about every
        50 ms, first when that long has passed; what it raises ends the waiting. `on_arrival` is called when the whole
        message is there, before anything is done with it.

        Raises WorkerLost at the end of the line, WorkerTimeout past the deadline, WireError on a broken frame.
        """
        patience = _Patience(None if timeout_s is None else time.monotonic() + timeout_s, while_waiting)
        header, descriptors = self._read_header(patience)
        try:
            length, announced = _HEADER.unpack(header)
            if length > self._max_body_bytes:
                raise WireError(f"a message of {length} bytes was announced, at most {self._max_body_bytes} are taken")
            if announced != len(descriptors):
                raise WireError(f"{announced} descriptors were announced and {len(descriptors)} came")
            body = self._read(length, patience)
            if on_arrival is not None:
                on_arrival()
            return _parse(body), descriptors
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def send_signal(self, signal: bytes, *, timeout_s: float | None = None) -> None:
        """Sends one byte outside of any frame: what must be understood at once. Raises as `send` does."""
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(signal)
        except TimeoutError as error:
            raise WorkerTimeout(f"the other end did not read a signal within {timeout_s} s") from error
        except OSError as error:
            raise WorkerLost(f"the line was closed while sending: {error}") from error

    def await_signal(self) -> bytes:
        """The next byte, which must be a signal; with the deadline of the last send, so that nothing is left to do
        between its arrival and the return. Raises WorkerLost at the end of the line."""
        signal = self._socket.recv(1)
        if not signal:
            raise WorkerLost("the other end closed the line")
        return signal

    def is_readable(self) -> bool:
        """Whether something has come, or the line has ended, without waiting for it."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        self._socket.close()

    def _read_header(self, patience: _Patience) -> tuple[bytes, list[int]]:
        read = partial(socket.recv_fds, self._socket, _HEADER.size, MAX_DESCRIPTORS)
        data, descriptors, _, _ = self._take(read, patience)
        try:
            if not data:
                raise WorkerLost("the other end closed the line")
            return data + self._read(_HEADER.size - len(data), patience), list(descriptors)
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def _read(self, length: int, patience: _Patience) -> bytes:
        parts = []
        while length > 0:
            part = self._take(partial(self._socket.recv, min(length, 1 << 20)), patience)
            if not part:
                raise WorkerLost("the other end closed the line in the middle of a message")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _take(self, read: Callable[[], T], patience: _Patience) -> T:
        """What `read` gives once there is something."""
        try:
            found = None
            while found is None:
                self._socket.settimeout(patience.next_s())
                with suppress(TimeoutError):
                    found = read()
        except OSError as error:
            raise WorkerLost(f"the line broke: {error}") from error
        return found


class _Patience:
    """How long to wait for the next byte of one message, and what to do meanwhile."""

    def __init__(self, deadline: float | None, while_waiting: Callable[[], None] | None) -> None:
        self._deadline = deadline
        self._while_waiting = while_waiting
        self._next_look_s = time.monotonic() + CHECK_EVERY_S

    def next_s(self) -> float | None:
        """Seconds, None for ever. Raises WorkerTimeout past the deadline."""
        now_s = time.monotonic()
        if self._deadline is not None and now_s >= self._deadline:
            raise WorkerTimeout("no whole message came within the time limit")
        ends = [] if self._deadline is None else [self._deadline]
        if self._while_waiting is not None:
            if now_s >= self._next_look_s:
                self._while_waiting()
                now_s = time.monotonic()
                self._next_look_s = now_s + CHECK_EVERY_S
            ends.append(self._next_look_s)
        return max(min(ends) - now_s, 1e-6) if ends else None


def _parse(body: bytes) -> Message:
    if _SURROGATE.search(body):
        raise WireError("a message holds half a surrogate pair")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is not JSON: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise WireError("a message is not an object with a kind")
    return message


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends; they are inherited by no program started later."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
