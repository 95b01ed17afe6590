"""Maps recorded streams to streams of one capture, ordered against the default stream as recorded."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.worker.recorder.driver_calls import Driver


class StreamOrder:
    def __init__(
        self,
        driver: Driver,
        first: ctypes.c_void_p,
        streams: Sequence[Mapping[str, Any]],
        make: Callable[[], ctypes.c_void_p],
    ) -> None:
        self._driver, self._first, self._facts, self._make = driver, first, streams, make
        self._own: dict[int, ctypes.c_void_p] = {}
        self._events: dict[int, ctypes.c_void_p] = {}
        self._begin = self._mark(first)
        self._unseen: dict[int, set[int]] = {}

    def _mark(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        event = ctypes.c_void_p(self._driver.pointer("cuEventCreate", 2))
        self._driver.cuEventRecord(event, stream)
        return event

    def _wait(self, stream: ctypes.c_void_p, event: ctypes.c_void_p) -> None:
        self._driver.cuStreamWaitEvent(stream, event, 0)

    def enter(self, number: int) -> ctypes.c_void_p:
        if number not in self._own:
            self._own[number] = self._make() if self._own else self._first
            if len(self._own) > 1:
                self._wait(self._own[number], self._begin)
            self._unseen[number] = {other for other in self._own if self._orders(number, other)}
        stream = self._own[number]
        for other in sorted(self._unseen[number]):
            self._wait(stream, self._mark(self._own[other]))
        self._unseen[number] = set()
        for other in self._own:
            if self._orders(number, other):
                self._unseen[other].add(number)
        return stream

    def _orders(self, one: int, other: int) -> bool:
        first, second = self._facts[one], self._facts[other]
        return one != other and first["blocking"] and second["blocking"] and (first["legacy"] or second["legacy"])

    def record(self, stream: int, event: int) -> None:
        self._events[event] = self._mark(self.enter(stream))

    def wait(self, stream: int, event: int) -> None:
        if event in self._events:
            self._wait(self.enter(stream), self._events[event])

    def join(self) -> None:
        others = [stream for stream in self._own.values() if stream is not self._first]
        for stream in others:
            self._wait(self._first, self._mark(stream))
        self._begin = self._mark(self._first)
        for stream in others:
            self._wait(stream, self._begin)
        self._unseen = {number: set() for number in self._own}
