import multiprocessing
import threading
import time

import pytest

from harness.executors.locks import hold_cores_to_build, hold_cores_to_time, hold_device, hold_to_evaluate


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def hold_until(lock, entered, leave):
    with lock():
        entered.set()
        leave.wait(120)


def hold_cpu_until(entered, leave):
    hold_until(lambda: hold_device("cpu"), entered, leave)


def start(lock, leave):
    entered = threading.Event()
    thread = threading.Thread(target=hold_until, args=(lock, entered, leave))
    thread.start()
    return entered, thread


def test_two_processes_do_not_hold_one_device_at_once():
    context = multiprocessing.get_context("spawn")
    entered, leave = context.Event(), context.Event()
    other = context.Process(target=hold_cpu_until, args=(entered, leave))
    other.start()
    assert entered.wait(60)
    with hold_device("cuda:0"):
        pass
    second, waiting = start(lambda: hold_device("cpu"), leave)
    assert not second.wait(0.3)
    leave.set()
    assert second.wait(60)
    other.join()
    waiting.join()


def test_timing_waits_for_running_builds_and_blocks_new_ones():
    leave_builds, leave_timing, leave_late = (threading.Event() for _ in range(3))
    builds = [start(hold_cores_to_build, leave_builds) for _ in range(2)]
    assert all(entered.wait(10) for entered, _ in builds)
    timing, timer = start(hold_cores_to_time, leave_timing)
    assert not timing.wait(0.2)
    late, builder = start(hold_cores_to_build, leave_late)
    assert not late.wait(0.2)
    leave_builds.set()
    assert timing.wait(10)
    assert not late.wait(0.2)
    leave_timing.set()
    assert late.wait(10)
    leave_late.set()
    for thread in (timer, builder, *(thread for _, thread in builds)):
        thread.join()


@pytest.mark.parametrize(
    ("lock", "reason"),
    [
        (lambda *say: hold_device("cpu", *say), "another harness process, which evaluates on this device"),
        (hold_cores_to_time, "builds or timings on these cores, perhaps of another harness process"),
    ],
)
def test_start_and_end_of_a_wait_for_a_lock_are_reported(lock, reason):
    leave, said, begun = threading.Event(), [], threading.Event()
    held, holder = start(lock, leave)
    assert held.wait(10)

    def say(text):
        said.append(text)
        begun.set()

    entered, waiting = start(lambda: lock(say), leave)
    assert begun.wait(10)
    assert said == [reason]
    leave.set()
    assert entered.wait(10)
    assert said[:2] == [reason, ""] or said == [reason, "", reason, ""]
    holder.join()
    waiting.join()


def test_a_build_that_waits_can_be_stopped():
    leave = threading.Event()
    timing, timer = start(hold_cores_to_time, leave)
    assert timing.wait(10)
    deadline_s = time.monotonic() + 0.2

    def check():
        if time.monotonic() > deadline_s:
            raise InterruptedError

    with pytest.raises(InterruptedError), hold_cores_to_build(check):
        pass
    leave.set()
    timer.join()


def test_evaluation_waiting_for_a_device_does_not_block_its_timing():
    leave_device, leave_timing, leave_late = (threading.Event() for _ in range(3))
    held, holder = start(lambda: hold_to_evaluate("cpu", times=True), leave_device)
    assert held.wait(10)
    late, evaluation = start(lambda: hold_to_evaluate("cpu", times=False), leave_late)
    assert not late.wait(0.2)
    timing, timer = start(hold_cores_to_time, leave_timing)
    assert timing.wait(10)
    leave_timing.set()
    leave_device.set()
    assert late.wait(10)
    leave_late.set()
    for thread in (holder, evaluation, timer):
        thread.join()
