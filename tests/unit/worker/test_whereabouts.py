"""In which file's code the threads of a process are."""

import os
import signal
import subprocess
import sys
import time

import pytest

from harness.wire.processes import state_of, threads_of
from harness.worker.whereabouts import NO_FILE, OWN_FILE, name_code, read_counters

WAITING = "import sys; print('ready', flush=True); sys.stdin.readline()"
BUSY_IN_MEMORY = """
import ctypes, mmap, platform
everything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=everything)
memory.write({"x86_64": b"\\xeb\\xfe", "aarch64": b"\\x00\\x00\\x00\\x14"}[platform.machine()])  # a branch to itself
print("ready", flush=True)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
"""


def find_where(program, *arguments, before_looking=lambda: None):
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05)  # until it has gone on to what it does for ever
        os.kill(process.pid, signal.SIGSTOP)
        while any(state_of(process.pid, thread) != "T" for thread in threads_of(process.pid)):
            time.sleep(0.001)
        before_looking()
        found = name_code(process.pid, read_counters(process.pid, threads_of(process.pid)))
        process.kill()
    if not found:
        pytest.skip("this kernel does not tell where a thread is")
    return found


def test_a_thread_that_waits_is_in_the_file_that_it_waits_in():
    (file,) = find_where(WAITING)
    assert os.path.basename(file).startswith(("libc", "libpython", "python", "libpthread", "ld-"))  # noqa: PTH119


def test_a_thread_that_works_in_memory_without_a_file_is_found_there():
    assert find_where(BUSY_IN_MEMORY) == [NO_FILE]


BUSY_IN_A_FILE = """
import ctypes, mmap, pathlib, platform, sys
path = pathlib.Path(sys.argv[1])
path.write_bytes({"x86_64": b"\\xeb\\xfe", "aarch64": b"\\x00\\x00\\x00\\x14"}[platform.machine()].ljust(mmap.PAGESIZE))
with path.open("r+b") as file:
    memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
if sys.argv[2] == "away":
    path.rename(path.with_suffix(".moved"))
    path.write_bytes(b"another one")
print("ready", flush=True)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
"""


@pytest.mark.parametrize("stays", ["here", "away"])
def test_a_file_is_known_by_more_than_its_name(stays, tmp_path):
    path = tmp_path / "libtorch.so"
    moved = path.with_suffix(".moved")
    expected = {"here": [str(path)], "away": [str(moved)]}[stays]
    assert find_where(BUSY_IN_A_FILE, str(path), stays) == expected
    gone = find_where(BUSY_IN_A_FILE, str(path), stays, before_looking=(path if stays == "here" else moved).unlink)
    assert [name.startswith(OWN_FILE) for name in gone] == [True]


def test_of_a_process_that_is_gone_nothing_is_known():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert read_counters(process.pid, [process.pid]) == []
    assert name_code(process.pid, [0x1000]) == []
