"""A page of host memory that evaluator and worker both map: signals without a system call, and the answer to a call.

The evaluator writes `signal`; the worker sees it, does what it says and writes the same value to `answer`. Both spin.
Each signal has a new number, so that an old answer is never taken for a new one. The page is untrusted: whatever the
worker writes is a report.

| word (64 bits) | written by | meaning |
| --- | --- | --- |
| 0 | evaluator | signal: 4 * number + kind |
| 1 | evaluator | with GO: how many bytes further than announced the inputs lie |
| 8 | worker | answer: the signal that it has obeyed |
| 9 | worker | number of output tensors |
| 16... | worker | address of each output tensor in the worker's device memory |
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from enum import IntEnum

SIZE_BYTES = 1 << 16
_SIGNAL, _SHIFT, _ANSWER, _COUNT, _ADDRESSES = 0, 1, 8, 9, 16
MAX_ADDRESSES = SIZE_BYTES // 8 - _ADDRESSES
_KINDS = 4
_WORD = (1 << 64) - 1


class Signal(IntEnum):
    """WAKE: make the device's context resident. GO: make the call. REST: there will be no call."""

    WAKE = 1
    GO = 2
    REST = 3


class Doorbell:
    """One end of it. `descriptor` is a memory file of SIZE_BYTES, which stays open."""

    def __init__(self, descriptor: int) -> None:
        self._words = memoryview(mmap.mmap(descriptor, SIZE_BYTES)).cast("Q")
        self._seen = self._words[_SIGNAL]

    def ring(self, kind: Signal, shift_bytes: int = 0) -> int:
        """Evaluator: gives a signal; the value that answers it. `shift_bytes`: see the table."""
        self._words[_SHIFT] = shift_bytes
        self._seen = (self._seen // _KINDS + 1) * _KINDS + kind
        self._words[_SIGNAL] = self._seen
        return self._seen

    def has_answered(self, signal: int, *, looks: int) -> bool:
        """Evaluator: whether the answer to a signal comes within so many looks (of about 50 ns)."""
        words = self._words
        return any(words[_ANSWER] == signal for _ in range(looks))

    def read_call(self) -> tuple[int, ...]:
        """Evaluator: the addresses of the outputs of the call that was answered; at most MAX_ADDRESSES."""
        count = min(self._words[_COUNT], MAX_ADDRESSES)
        return tuple(self._words[_ADDRESSES : _ADDRESSES + count])

    def await_signal(self) -> Signal:
        """Worker: the next signal, which `answer` or `answer_call` answers."""
        words, seen = self._words, self._seen
        while words[_SIGNAL] == seen:
            pass
        self._seen = words[_SIGNAL]
        return Signal(self._seen % _KINDS)

    def read_shift(self) -> int:
        """Worker: how many bytes further than announced the inputs lie; to be read after GO."""
        return self._words[_SHIFT]

    def answer(self) -> None:
        """Worker: the signal was obeyed."""
        self._words[_ANSWER] = self._seen

    def answer_call(self, addresses: Sequence[int]) -> None:
        """Worker: the call is over, and its outputs lie there."""
        words = self._words
        words[_COUNT] = len(addresses)
        for index, address in enumerate(addresses[:MAX_ADDRESSES], start=_ADDRESSES):
            words[index] = address & _WORD
        words[_ANSWER] = self._seen


def make_doorbell() -> int:
    """The descriptor of a new page. Its size is sealed: an access beyond a file that was shrunk ends the process."""
    descriptor = os.memfd_create("harness-doorbell", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, SIZE_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor
