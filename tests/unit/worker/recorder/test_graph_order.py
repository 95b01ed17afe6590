"""Recorded streams, as streams of one capture: which wait for which."""

import ctypes

import pytest

from harness.worker.recorder.stream_order import StreamOrder

LEGACY = {"legacy": True, "blocking": True}
BLOCKING = {"legacy": False, "blocking": True}
NON_BLOCKING = {"legacy": False, "blocking": False}


class Driver:
    """Notes which operations have ended before each: work on a stream, records and waits."""

    def __init__(self):
        self.done, self.at_event, self.count = {}, {}, 0

    def pointer(self, name, *arguments):
        assert name == "cuEventCreate"
        self.count += 1
        return self.count

    def cuEventRecord(self, event, stream):  # noqa: N802
        self.at_event[event.value] = set(self.done.setdefault(stream.value, set()))

    def cuStreamWaitEvent(self, stream, event, flags):  # noqa: N802
        self.done.setdefault(stream.value, set()).update(self.at_event[event.value])


class Capture:
    def __init__(self, *streams):
        self.driver, self.made = Driver(), 100
        self.order = StreamOrder(self.driver, ctypes.c_void_p(100), streams, self._make)

    def _make(self):
        self.made += 1
        return ctypes.c_void_p(self.made)

    def work(self, stream, name):
        """The work that has ended before it."""
        done = self.driver.done.setdefault(self.order.enter(stream).value, set())
        before = set(done)
        done.add(name)
        return before


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (LEGACY, BLOCKING, True),
        (BLOCKING, LEGACY, True),
        (BLOCKING, BLOCKING, False),
        (LEGACY, NON_BLOCKING, False),
        (NON_BLOCKING, LEGACY, False),
        (NON_BLOCKING, NON_BLOCKING, False),
    ],
)
def test_only_the_default_stream_and_blocking_ones_wait_for_each_other(first, second, waits):
    capture = Capture(first, second)
    capture.work(0, "a")
    assert ("a" in capture.work(1, "b")) == waits
    assert ("b" in capture.work(0, "c")) == waits


def test_work_of_one_stream_is_in_order():
    capture = Capture(NON_BLOCKING)
    capture.work(0, "a")
    assert capture.work(0, "b") == {"a"}


def test_work_of_the_default_stream_stands_between_that_of_blocking_streams():
    capture = Capture(BLOCKING, LEGACY, BLOCKING)
    capture.work(0, "a")
    capture.work(1, "b")
    assert capture.work(2, "c") == {"a", "b"}


def test_a_stream_waits_for_a_recorded_event_and_not_for_later_work():
    capture = Capture(NON_BLOCKING, NON_BLOCKING)
    capture.work(0, "a")
    capture.order.record(0, 7)
    capture.work(0, "b")
    capture.order.wait(1, 7)
    assert capture.work(1, "c") == {"a"}


def test_an_event_that_was_recorded_before_the_call_is_not_waited_for():
    capture = Capture(NON_BLOCKING)
    capture.order.wait(0, 7)
    assert capture.work(0, "a") == set()


def test_after_a_synchronization_all_streams_wait_for_all_work():
    capture = Capture(NON_BLOCKING, NON_BLOCKING, NON_BLOCKING)
    capture.work(0, "a")
    capture.work(1, "b")
    capture.order.join()
    assert {"a", "b"} <= capture.work(1, "c")
    assert {"a", "b"} <= capture.work(2, "d")  # a stream of which nothing was heard before
