"""In which file's code the threads of a stopped process are."""

import os
import signal
import subprocess
import sys
import time

import pytest

from harness.wire.processes import state_of, threads_of
from harness.worker.whereabouts import NO_FILE, find_code

WAITING = "import sys; print('ready', flush=True); sys.stdin.readline()"
BUSY_IN_MEMORY = """
import ctypes, mmap, platform
everything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=everything)
memory.write({"x86_64": b"\\xeb\\xfe", "aarch64": b"\\x00\\x00\\x00\\x14"}[platform.machine()])  # a branch to itself
print("ready", flush=True)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
"""


def find_where(program):
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05)  # until it has gone on to what it does for ever
        os.kill(process.pid, signal.SIGSTOP)
        while any(state_of(process.pid, thread) != "T" for thread in threads_of(process.pid)):
            time.sleep(0.001)
        found = find_code(process.pid, threads_of(process.pid))
        process.kill()
    if found == [None]:
        pytest.skip("this kernel does not tell where a thread is")
    return found


def test_a_thread_that_waits_is_in_the_file_that_it_waits_in():
    (file,) = find_where(WAITING)
    assert os.path.basename(file).startswith(("libc", "libpython", "python", "libpthread", "ld-"))  # noqa: PTH119


def test_a_thread_that_works_in_memory_without_a_file_is_found_there():
    assert find_where(BUSY_IN_MEMORY) == [NO_FILE]


def test_of_a_process_that_is_gone_nothing_is_known():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert find_code(process.pid, [process.pid]) == [None]
