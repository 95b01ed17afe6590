"""The watch on memory beyond the limit of a process: who is blamed."""

import os
import subprocess
import sys

import pytest

from harness.domain import HarnessError
from harness.hardware.host import MemoryState
from harness.sandbox import worker_process
from harness.sandbox.worker_process import MemoryWatch

GIB = 1 << 30


@pytest.fixture
def arena():
    descriptor = os.memfd_create("arena")
    yield descriptor
    os.close(descriptor)


def watch_through(*views):
    """A watch on this process that finds these states of the machine, one after another."""
    return MemoryWatch(os.getpid(), None, iter([MemoryState(**view) for view in views]).__next__)


def view(available_bytes, shared_bytes=0):
    return {"available_bytes": available_bytes, "shared_bytes": shared_bytes}


def test_memory_that_somebody_else_took_is_not_blamed_on_the_candidate(arena):
    with pytest.raises(HarnessError, match="candidate is not the cause"):
        watch_through(view(10 * GIB), view(0)).find_overuse(arena)


def test_unattributed_shared_pages_are_charged_to_the_worker(arena):
    message = watch_through(view(10 * GIB), view(0, 9 * GIB)).find_overuse(arena)
    assert "10240 MiB were taken" in message


def test_memory_released_at_the_end_of_a_worker_is_charged_to_it(arena):
    watch = watch_through(view(10 * GIB), view(0), view(1 * GIB), view(9 * GIB))
    with pytest.raises(HarnessError) as raised:
        watch.find_overuse(arena)
    assert "0 MiB of memory were free" in watch.explain_shortage(raised.value)


def test_memory_not_released_by_a_worker_is_not_charged_to_it(arena, monkeypatch):
    monkeypatch.setattr(worker_process, "RECOVERY_S", 0.0)
    watch = watch_through(view(10 * GIB), view(0), view(1 * GIB))
    with pytest.raises(HarnessError) as raised:
        watch.find_overuse(arena)
    with pytest.raises(HarnessError, match="candidate is not the cause"):
        watch.explain_shortage(raised.value)


# Its main thread ends and leaves another one, which /proc does not show at the process's own number.
HEADLESS = """
import ctypes, sys, threading, time
def hold():
    time.sleep(0.2)
    {take}
    print(1, flush=True)
    sys.stdin.readline()
    import os
    os._exit(0)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall({{"x86_64": 60, "aarch64": 93}}[__import__("os").uname().machine], 0)
"""


@pytest.mark.parametrize(
    ("take", "found"),
    [
        ("kept = bytearray(b'x' * (64 << 20))", "MiB"),
        ("import os; f = os.memfd_create('m'); os.write(f, bytes(64 << 20))", "MiB"),
        ("import os; kept = [os.dup(0) for _ in range(300)]", "files open"),
    ],
    ids=["memory", "memory file", "files"],
)
def test_a_process_without_its_main_thread_hides_nothing(arena, take, found, monkeypatch):
    monkeypatch.setattr(worker_process, "MAX_OPEN_FILES", 200)
    program = HEADLESS.format(take=take)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        watch = MemoryWatch(process.pid, 48 << 20)
        process.stdout.readline()
        assert found in (watch.find_overuse(arena) or "nothing")
        process.stdin.write(b"\n")
        process.stdin.close()


def test_as_long_as_enough_is_left_nothing_is_wrong(arena):
    assert watch_through(view(10 * GIB), view(5 * GIB, 5 * GIB)).find_overuse(arena) is None


def test_it_looks_at_most_every_fifty_milliseconds(arena):
    watch = watch_through(view(10 * GIB), view(10 * GIB))
    assert watch.find_overuse(arena) is None
    assert watch.find_overuse(arena) is None  # a third look at the machine would raise StopIteration


def test_memory_files_that_nothing_maps_count_once(arena):
    program = (
        "import os,sys; f=os.memfd_create('m'); os.write(f, bytes(64<<20)); g=os.dup(f); print(1, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        tight, loose = MemoryWatch(process.pid, 63 << 20), MemoryWatch(process.pid, 80 << 20)
        assert "64 MiB" in tight.find_overuse(arena)
        assert loose.find_overuse(arena) is None
        process.stdin.write(b"\n")
        process.stdin.close()


def test_the_evaluators_own_memory_file_does_not_count(arena):
    os.write(arena, bytes(64 << 20))
    program = "print(1, flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "pass_fds": (arena,)}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        process.stdout.readline()
        assert MemoryWatch(process.pid, 32 << 20).find_overuse(arena) is None
        assert "64 MiB" in MemoryWatch(process.pid, 32 << 20).find_overuse(process.stdout.fileno())
        process.stdin.write(b"\n")
        process.stdin.close()
