"""A page of host memory for signals and answers without system calls. Both ends spin. The page is untrusted.

| word (64 bits) | written by | meaning |
| --- | --- | --- |
| 0 | evaluator | signal: 8 * number + kind; a new number each time |
| 1 | evaluator | with a call: shift of the inputs in bytes |
| 2 | evaluator | with a call: seed of torch's generators, if calls are seeded |
| 8 | worker | answer: the last completed signal |
| 9 | worker | number of output tensors |
| 16... | worker | device address of each output tensor |
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from enum import IntEnum

SIZE_BYTES = 1 << 16
HELD_US = 45_000  # at least, from GO_AHEAD_OF_STREAMS on
_SIGNAL, _SHIFT, _SEED, _ANSWER, _COUNT, _ADDRESSES = 0, 1, 2, 8, 9, 16
MAX_ADDRESSES = SIZE_BYTES // 8 - _ADDRESSES
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
    """`descriptor` is a memory file of SIZE_BYTES, which stays open."""

    def __init__(self, descriptor: int) -> None:
        self._words = memoryview(mmap.mmap(descriptor, SIZE_BYTES)).cast("Q")
        self._seen = self._words[_SIGNAL]

    def ring(self, kind: Signal, shift_bytes: int = 0, seed: int = 0) -> int:
        """Return the value of the answer."""
        self._words[_SHIFT], self._words[_SEED] = shift_bytes, seed
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

    def read_seed(self) -> int:
        """Valid during a call."""
        return self._words[_SEED]

    def answer(self) -> None:
        self._words[_ANSWER] = self._seen

    def answer_call(self, addresses: Sequence[int]) -> None:
        words = self._words
        words[_COUNT] = len(addresses)
        for index, address in enumerate(addresses[:MAX_ADDRESSES], start=_ADDRESSES):
            words[index] = address & _WORD
        words[_ANSWER] = self._seen


def make_doorbell() -> int:
    """Seal the size, since an access beyond a shrunk file would kill the process."""
    descriptor = os.memfd_create("harness-doorbell", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, SIZE_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor
