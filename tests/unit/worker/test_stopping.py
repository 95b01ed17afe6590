"""How the forkserver stops processes, and what it notices of those that do not stay so."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from harness.protocol.process_tree import find_tree, state_of
from harness.worker.forkserver import PauseControl

START = """
import ctypes, os, signal, sys, time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until: pass
def wait():
    until = time.monotonic() + 60  # longer than any test, and not for ever
    while time.monotonic() < until: time.sleep(0.001)
def say_ready():
    os.write(1, b"ready\\n")  # print fails in a handler that a second signal interrupts
"""
# A helper in a group of its own; its parent is about to end, and waits in the kernel for watches to be torn down: the
# helper's group is orphaned by that, for which the kernel continues it. It is adopted then, as a worker's keeper does.
ORPHAN = """
libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)
told, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.write(tell, b"x")
        wait()
    os.read(told, 1)
    for _ in range(12):
        libc.inotify_add_watch(libc.inotify_init1(0), b"/tmp", 2)
    say_ready()
    os._exit(0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
wait()
"""
# Works when it is continued, and then has a child reaped that had worked longer, whose time is no longer seen.
HIDES_ITS_WORK = """
def work(*_):
    burn(0.005)
    os.wait()
    say_ready()
signal.signal(signal.SIGUSR1, work)
child = os.fork()
if child == 0:
    burn(0.1)
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
say_ready()
wait()
"""
IDLE = """
if os.fork() == 0:
    wait()
say_ready()
wait()
"""


@pytest.fixture
def running():
    """Processes that `start` has started, by number; all of them end with the test."""
    processes = {}
    yield processes
    for process in processes.values():
        for pid in find_tree(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.fixture
def start(running):
    def run(program):
        process = subprocess.Popen(
            [sys.executable, "-c", START + program], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        running[process.pid] = process
        assert process.stdout.readline() == "ready\n"
        return process.pid

    return run


def pause(held, pid):
    return held.pause({"process": pid, "places": [], "spans": [], "patience_s": 30.0})


def continue_and_stop(process):
    """Has HIDES_ITS_WORK work once."""
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGCONT)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGSTOP)


def is_restless(held, pid):
    return pause(held, pid)["ran_while_stopped"]


def test_stopped_process_stays_stopped(start):
    pid = start(IDLE)
    held = PauseControl(pid, set())
    for _ in range(5):
        assert pause(held, pid)["running"] == 0
        assert {state_of(process, process) for process in find_tree(pid)} == {"T"}
        time.sleep(0.01)
        held.resume()
    assert not is_restless(held, pid)


@pytest.mark.parametrize("_", range(5))
def test_orphaned_processes_are_stopped_again(start, _):
    pid = start(ORPHAN)
    held = PauseControl(pid, set())
    assert pause(held, pid)["running"] == 0
    time.sleep(0.2)
    states = {state_of(process, process) for process in held._processes}
    assert states <= {"T", "Z", ""}
    held.resume()
    assert held._stop_violations == 0


def test_work_of_a_continued_process_is_seen_whoever_is_reaped_meanwhile(start, running):
    pid = start(HIDES_ITS_WORK)
    held = PauseControl(pid, set())
    assert pause(held, pid)["running"] == 0
    continue_and_stop(running[pid])
    assert len(find_tree(pid)) == 1  # the child has been reaped
    held.resume()
    assert held._stop_violations == 1


def test_who_is_restless_three_times_does_not_let_itself_be_stopped(start, running):
    pid = start(HIDES_ITS_WORK.replace("os.wait()", "pass"))
    held = PauseControl(pid, set())
    for _ in range(3):
        assert pause(held, pid)["running"] == 0
        continue_and_stop(running[pid])
        held.resume()
    assert is_restless(held, pid)


def test_a_few_of_many_stops_may_be_the_machines_fault(start, running):
    pid = start(HIDES_ITS_WORK.replace("os.wait()", "pass"))
    held = PauseControl(pid, set())
    for number in range(30):
        assert pause(held, pid)["running"] == 0
        if number % 10 == 0:
            continue_and_stop(running[pid])
        held.resume()
    assert held._stop_violations == 3
    assert not is_restless(held, pid)
