"""Events before and after each operation of a replayed call, and whose the time between them is."""

import ctypes
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from harness.protocol.device_memory import NO_FUNCTION
from harness.worker.recorder.driver_calls import Driver, DriverError, EdgeData

MOST_OPERATIONS = 1 << 15
_EXTERNAL = 1  # an event that is recorded when the graph runs
_WITHOUT_WORK = ("empty", "graph")  # nodes; those of an inner graph have events of their own
Interval = tuple[int, float, float]  # a function, and when it began and ended, in us


class Marks:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._operations: list[tuple[int, ctypes.c_void_p, ctypes.c_void_p]] = []
        self._events: list[ctypes.c_void_p] = []

    def begin(self, stream: ctypes.c_void_p) -> None:
        """All work of the capture must follow."""
        self._begin = self._record(stream)

    @contextmanager
    def around(self, row: Sequence[Any], stream: ctypes.c_void_p) -> Iterator[None]:
        before = self._record(stream)
        yield
        self._note(row, before, self._record(stream))

    def connect(
        self, graph: ctypes.c_void_p, rows: Sequence[Any], nodes: Sequence[int], edges: Sequence[Sequence[int]]
    ) -> list[tuple[int, int, EdgeData]]:
        """Put each node of a graph between two of events, and return all edges."""
        found, ends = list[tuple[int, int, EdgeData]](), list[tuple[int, int]]()
        for row, node in zip(rows, nodes, strict=True):
            if row[0] in _WITHOUT_WORK:
                ends.append((node, node))
                continue
            (before, first), (after, last) = self._add_node(graph), self._add_node(graph)
            self._note(row, before, after)
            ends.append((first, last))
            found += [(first, node, EdgeData()), (node, last, EdgeData())]
        pairs = dict.fromkeys((edge[0], edge[1]) for edge in edges)  # of several kinds there may be several
        return [*found, *((ends[source][1], ends[target][0], EdgeData()) for source, target in pairs)]

    def measure(self) -> list[Interval]:
        """Call after a replay."""
        return [(function, self._pass(before), self._pass(after)) for function, before, after in self._operations]

    def close(self) -> None:
        for event in self._events:
            self._driver.cuEventDestroy_v2(event)

    def _note(self, row: Sequence[Any], before: ctypes.c_void_p, after: ctypes.c_void_p) -> None:
        if len(self._operations) == MOST_OPERATIONS:
            raise DriverError(f"its parts are not timed, since it has more than {MOST_OPERATIONS} operations")
        self._operations.append((row[2] if row[0] == "launch" else NO_FUNCTION, before, after))

    def _make_event(self) -> ctypes.c_void_p:
        self._events.append(ctypes.c_void_p(self._driver.pointer("cuEventCreate", 0)))
        return self._events[-1]

    def _record(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        event = self._make_event()
        self._driver.cuEventRecordWithFlags(event, stream, _EXTERNAL)
        return event

    def _add_node(self, graph: ctypes.c_void_p) -> tuple[ctypes.c_void_p, int]:
        event = self._make_event()
        node = self._driver.pointer("cuGraphAddEventRecordNode", graph, None, ctypes.c_size_t(0), event)
        return event, node

    def _pass(self, event: ctypes.c_void_p) -> float:
        passed_ms = ctypes.c_float()
        self._driver.cuEventElapsedTime_v2(ctypes.byref(passed_ms), self._begin, event)
        return passed_ms.value * 1e3


def divide_time(intervals: Sequence[Interval], own: Collection[int]) -> dict[int, float]:
    """Return the time in us of each function. While any other works, it is the others', whatever `own` ones do."""
    times_us = dict.fromkeys((function for function, *_ in intervals), 0.0)
    changes = defaultdict[float, Counter[int]](Counter)
    for function, began_us, ended_us in intervals:
        changes[began_us][function] += 1
        changes[max(began_us, ended_us)][function] -= 1
    active, last_us = Counter[int](), 0.0
    for at_us in sorted(changes):
        working = [function for function, count in active.items() if count > 0]
        for function in (paid := [one for one in working if one not in own] or working):
            times_us[function] += (at_us - last_us) / len(paid)
        active.update(changes[at_us])
        last_us = at_us
    return times_us
