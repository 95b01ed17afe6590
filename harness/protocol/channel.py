"""Framed JSON messages with file descriptors, and single-byte signals, over a Unix stream socket.

Header: body length and number of descriptors (big-endian 32 bits each). A malformed frame raises WireError. An answer
has its request's kind, unless it is a `WorkerReply`.
"""

from __future__ import annotations

import json
import mmap
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum, StrEnum
from functools import partial
from typing import Any, Literal, TypeVar

from harness.domain import WireError, WorkerLost, WorkerTimeout
from harness.protocol.descriptors import closing_on_error, make_sealed_memory
from harness.protocol.tensor_layout import MOST_WORDS

PROGRAM_FILE = "candidate.py"  # of a worker's program, in its scratch folder


class WorkerRequest(StrEnum):
    WARM = "warm"
    SETTLE = "settle"
    START = "start"
    CONSTRUCT = "construct"
    DUMP_STATE = "dump_state"
    LOAD_STATE = "load_state"
    HOLD_STATE = "hold_state"
    CALL = "call"  # answered by ARMED, then CALLED or DISARMED
    WINDOW = "window"  # likewise
    RECORD = "record"
    EXPORT = "export"
    STORE = "store"
    PIN = "pin"
    PROFILE = "profile"
    DESCRIBE_ABLATION = "describe_ablation"
    CONFIGURE_EMULATORS = "configure_emulators"
    TAKE_KERNEL_FINDINGS = "take_kernel_findings"
    READ_COMPILED = "read_compiled"
    COMPILE_AGAIN = "compile_again"  # to a process that runs no program
    COLLECT = "collect"
    # To a process that replays recorded work instead of running a candidate.
    OPEN_REPLAYER = "open_replayer"
    MAP_PAGES = "map_pages"
    BUILD_GRAPH = "build_graph"
    LEAVE_OUT = "leave_out"
    TIME_KERNELS = "time_kernels"
    REPLAY = "replay"
    REPLAY_IN_ROW = "replay_in_row"
    UNLOAD = "unload"


# "compile": compiles the kernels of a JIT language for the emulated GPU, and runs none; "compile_all": with every
# configuration, for a real GPU's worker. For the others see `harness.worker.instrumentation`.
Mode = Literal["plain", "profile", "ablate", "ablate_generated", "count", "compile", "compile_all"]


class WorkerReply(StrEnum):
    UP = "up"  # unasked, when the worker has started
    ARMED = "armed"
    CALLED = "called"
    DISARMED = "disarmed"
    FAILED = "failed"  # instead of any other
    BUILD = "build"  # a request in the middle of any other; the evaluator answers with BUILT


BUILT = "built"


class ForkserverRequest(StrEnum):
    PRELOAD = "preload"
    SPAWN = "spawn"
    KILL = "kill"
    PAUSE = "pause"
    RESUME = "resume"  # without a reply
    SAMPLE = "sample"
    FIND = "find"


_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")
_HEADER = struct.Struct(">II")
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_DESCRIPTORS = 8
POLL_S = 0.05
CODE_BYTES = 64  # of machine code, which tell whose it is
GO, REST = b"g", b"r"  # single bytes outside of any frame, sent while the other end awaits a signal

Message = dict[str, Any]
T = TypeVar("T")


class Channel:
    """Not thread-safe."""

    def __init__(self, end: socket.socket, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._socket = end
        self._max_body_bytes = max_body_bytes

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message, descriptors: Sequence[int] = (), *, timeout_s: float | None = None) -> None:
        """Raises WorkerLost or WorkerTimeout."""
        # Candidate strings may contain lone surrogates, which neither files nor sqlite accept.
        body = _ENCODER.encode(message).encode(errors="replace")
        self._socket.settimeout(timeout_s)
        frame = _HEADER.pack(len(body), len(descriptors)) + body
        try:
            # The first send carries the descriptors; Linux may accept only part of a long frame.
            sent = socket.send_fds(self._socket, [frame], list(descriptors)) if descriptors else 0
            self._socket.sendall(frame[sent:])
        except TimeoutError as error:
            raise WorkerTimeout(f"the other end did not read a message within {timeout_s} s") from error
        except OSError as error:
            raise WorkerLost(f"the connection was closed while sending: {error}") from error

    def receive(
        self,
        *,
        timeout_s: float | None = None,
        while_waiting: Callable[[], None] | None = None,
        on_arrival: Callable[[], None] | None = None,
    ) -> tuple[Message, list[int]]:
        """Return the next message and its descriptors, which the caller must close.

        `while_waiting` is called every 50 ms, and its exceptions end the wait. `on_arrival` is called before the
        message is parsed. Raises WorkerLost, WorkerTimeout or WireError.
        """
        patience = _Patience(None if timeout_s is None else time.monotonic() + timeout_s, while_waiting)
        header, descriptors = self._read_header(patience)
        with closing_on_error(descriptors):
            length, announced = _HEADER.unpack(header)
            if length > self._max_body_bytes:
                raise WireError(f"a message of {length} bytes exceeds the limit of {self._max_body_bytes}")
            if announced != len(descriptors):
                raise WireError(f"expected {announced} descriptors, received {len(descriptors)}")
            body = self._read(length, patience)
            if on_arrival is not None:
                on_arrival()
            return _parse(body), descriptors

    def send_signal(self, signal: bytes, *, timeout_s: float | None = None) -> None:
        """Send one byte outside any frame. Raises WorkerLost or WorkerTimeout."""
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(signal)
        except TimeoutError as error:
            raise WorkerTimeout(f"the other end did not read a signal within {timeout_s} s") from error
        except OSError as error:
            raise WorkerLost(f"the connection was closed while sending: {error}") from error

    def await_signal(self) -> bytes:
        """Use the timeout of the last `send`, so that no work separates arrival and return."""
        signal = self._socket.recv(1)
        if not signal:
            raise WorkerLost("the other end closed the connection")
        return signal

    def await_words(self, count: int) -> tuple[int, ...]:
        """Return the numbers of 64 bits that follow a signal."""
        return struct.unpack(f"<{count}Q", self._socket.recv(8 * count, socket.MSG_WAITALL)) if count else ()

    def is_readable(self) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        self._socket.close()

    def _read_header(self, patience: _Patience) -> tuple[bytes, list[int]]:
        read = partial(socket.recv_fds, self._socket, _HEADER.size, MAX_DESCRIPTORS)
        data, descriptors, _, _ = self._take(read, patience)
        with closing_on_error(descriptors):
            if not data:
                raise WorkerLost("the other end closed the connection")
            return data + self._read(_HEADER.size - len(data), patience), list(descriptors)

    def _read(self, length: int, patience: _Patience) -> bytes:
        parts = []
        while length > 0:
            part = self._take(partial(self._socket.recv, min(length, 1 << 20)), patience)
            if not part:
                raise WorkerLost("the other end closed the connection in the middle of a message")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _take(self, read: Callable[[], T], patience: _Patience) -> T:
        try:
            found = None
            while found is None:
                self._socket.settimeout(patience.next_s())
                with suppress(TimeoutError):
                    found = read()
        except OSError as error:
            raise WorkerLost(f"the connection failed: {error}") from error
        return found


class _Patience:
    def __init__(self, deadline: float | None, while_waiting: Callable[[], None] | None) -> None:
        self._deadline = deadline
        self._while_waiting = while_waiting
        self._next_poll_s = time.monotonic() + POLL_S

    def next_s(self) -> float | None:
        now_s = time.monotonic()
        if self._deadline is not None and now_s >= self._deadline:
            raise WorkerTimeout("no complete message arrived within the time limit")
        ends = [] if self._deadline is None else [self._deadline]
        if self._while_waiting is not None:
            if now_s >= self._next_poll_s:
                self._while_waiting()
                now_s = time.monotonic()
                self._next_poll_s = now_s + POLL_S
            ends.append(self._next_poll_s)
        return max(min(ends) - now_s, 1e-6) if ends else None


def _parse(body: bytes) -> Message:
    if rb"\u" in body and _SURROGATE.search(body):  # the search takes seconds for files of compilers
        raise WireError("a message contains a lone surrogate")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is not JSON: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise WireError("a message is not an object with a kind")
    return message


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Child programs cannot inherit the sockets."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


SIZE_BYTES = 1 << 16
HELD_US = 45_000  # at least, from GO_AHEAD_OF_STREAMS on
_SIGNAL, _SHIFT, _ANSWER, _COUNT, _ADDRESSES = 0, 1, 8, 9, 16
_GIVEN = SIZE_BYTES // 8 - MOST_WORDS - 1
MAX_ADDRESSES = _GIVEN - _ADDRESSES
_KINDS = 8
_WORD = (1 << 64) - 1


class Signal(IntEnum):
    """WAKE: make the device's context resident. GO: call. REST: no call. GO_AHEAD_OF_STREAMS: call while torch's other
    streams are held back, and wait for the current one only."""

    WAKE = 1
    GO = 2
    REST = 3
    GO_AHEAD_OF_STREAMS = 4


class Doorbell:
    """A page of host memory for signals and answers without system calls. Both ends spin. The page is untrusted.

    | word (64 bits) | written by | meaning |
    | --- | --- | --- |
    | 0 | evaluator | signal: 8 * number + kind; a new number each time |
    | 1 | evaluator | with a call: shift of the inputs in bytes |
    | 8 | worker | answer: the last completed signal |
    | 9 | worker | number of output tensors |
    | 16... | worker | device address of each output tensor |
    | the last 1025 | evaluator | with a call: seed of torch's generators, if calls are seeded; values among inputs |

    `descriptor` is a memory file of SIZE_BYTES, which stays open.
    """

    def __init__(self, descriptor: int) -> None:
        self._words = memoryview(mmap.mmap(descriptor, SIZE_BYTES)).cast("Q")
        self._seen = self._words[_SIGNAL]

    def ring(self, kind: Signal, shift_bytes: int = 0, words: Sequence[int] = ()) -> int:
        """Return the value of the answer."""
        self._words[_SHIFT] = shift_bytes
        for index, word in enumerate(words, start=_GIVEN):
            self._words[index] = word
        self._seen = (self._seen // _KINDS + 1) * _KINDS + kind
        self._words[_SIGNAL] = self._seen
        return self._seen

    def has_answered(self, signal: int, *, looks: int) -> bool:
        """Poll up to `looks` times (50 ns each)."""
        words = self._words
        return any(words[_ANSWER] == signal for _ in range(looks))

    def read_call(self) -> tuple[int, ...]:
        """Return the addresses of the outputs, at most MAX_ADDRESSES."""
        count = min(self._words[_COUNT], MAX_ADDRESSES)
        return tuple(self._words[_ADDRESSES : _ADDRESSES + count])

    def await_signal(self) -> Signal:
        words, seen = self._words, self._seen
        while words[_SIGNAL] == seen:
            pass
        self._seen = words[_SIGNAL]
        return Signal(self._seen % _KINDS)

    def read_shift(self) -> int:
        """Valid during a call."""
        return self._words[_SHIFT]

    def read_words(self, count: int) -> tuple[int, ...]:
        """Valid during a call."""
        return tuple(self._words[_GIVEN : _GIVEN + count])

    def answer(self) -> None:
        self._words[_ANSWER] = self._seen

    def answer_call(self, addresses: Sequence[int]) -> None:
        words = self._words
        words[_COUNT] = len(addresses)
        for index, address in enumerate(addresses[:MAX_ADDRESSES], start=_ADDRESSES):
            words[index] = address & _WORD
        words[_ANSWER] = self._seen


def make_doorbell() -> int:
    return make_sealed_memory("harness-doorbell", SIZE_BYTES)
