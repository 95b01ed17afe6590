"""Whether machine code from files of somebody's own was run, as the kernel has it."""

import os
import signal
import subprocess
import sys

import pytest

from harness.worker.forkserver import count_used_bytes, forget_use

PROGRAM = """
import ctypes, os, sys
source = sys.argv[1]
descriptor = os.memfd_create("own")
with open(source, "rb") as file:
    os.write(descriptor, file.read())
library = ctypes.CDLL(f"/proc/self/fd/{descriptor}")
library.abs.restype = ctypes.c_int
library.abs(-1)
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("call"):
        library.abs(-1)
    print("done", flush=True)
"""
SOURCE = "int abs(int x) { return x < 0 ? -x : x; }\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(SOURCE)
    command = ["g++", "-x", "c", "-shared", "-fPIC", "-o", folder / "own.so", folder / "own.c"]
    subprocess.run(command, check=True)
    return folder / "own.so"


@pytest.fixture
def process(library):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def count_after(process, command):
    stop(process.pid)
    if not forget_use(process.pid):
        pytest.skip("this kernel does not tell which pages are used")
    os.kill(process.pid, signal.SIGCONT)
    process.stdin.write(f"{command}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
    stop(process.pid)
    used_bytes = count_used_bytes(process.pid)
    os.kill(process.pid, signal.SIGCONT)
    return used_bytes


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


def test_code_of_its_own_counts_whenever_it_has_run(process):
    """Some tens of times: a processor that remembers a page does not note its use."""
    assert all(count_after(process, "call") > 0 for _ in range(40))


def test_code_that_is_only_there_does_not_count(process):
    assert count_after(process, "rest") == 0


def test_of_a_process_that_is_gone_nothing_is_known(process):
    assert not forget_use(1 << 22)
    assert count_used_bytes(1 << 22) is None
