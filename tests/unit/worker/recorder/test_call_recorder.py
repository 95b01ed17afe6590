"""Calls are recorded until two in a row have launched the same work."""

import pytest

PROLOGUE = """
    import itertools
    from harness.worker.recorder.driver_calls import CallRecorder, NotRecordable
    target, calls = allocate(), itertools.count()
    def fill(count):
        for _ in range(count):
            call("cuMemsetD8Async", target, 0, 4, 0)
    def try_record(work, reset=lambda: None):
        before = set(os.listdir("/proc/self/fd"))
        try:
            result, recording, descriptors = CallRecorder("/private/").record(reset, work)
            return [result, len(recording["operations"]), len(descriptors), recording["unsupported"]]
        except (NotRecordable, ZeroDivisionError) as error:
            return [str(error), len(set(os.listdir("/proc/self/fd")) - before), 0, []]
"""


@pytest.fixture
def record(run):
    return lambda source: run("if True:" + PROLOGUE + source)


@pytest.mark.slow
def test_two_calls_of_the_same_work_are_enough(record):
    assert record("    answer = try_record(lambda: (fill(3), next(calls))[1])") == [1, 3, 2, []]


def test_calls_that_tune_themselves_first_are_recorded_afterwards(record):
    assert record("    answer = try_record(lambda: (fill(max(4 - (n := next(calls)), 2)), n)[1])") == [3, 2, 2, []]


def test_work_before_a_call_is_not_recorded(record):
    assert record("    answer = try_record(lambda: (fill(3), next(calls))[1], lambda: fill(1))") == [1, 3, 2, []]


def test_the_last_of_calls_that_never_become_steady_is_unsupported(record):
    found = record("    answer = try_record(lambda: (fill(n := next(calls)), n)[1])")
    assert found == [5, 5, 2, ["6 calls in a row launched different work"]]


def test_a_call_that_fails_leaves_no_descriptor_open(record):
    assert record("    answer = try_record(lambda: 1 // 0)")[1] == 0
