"""What the forkserver reads from /proc of a stopped process: the code that it executes, and pages mapped twice."""

import ctypes
import mmap
import os
import signal
import subprocess
import sys

import pytest

from harness.protocol.channel import CODE_BYTES
from harness.worker.mappings import maps_custom_code, read_code_places, repeats_pages

PAGE = mmap.PAGESIZE
SPIN = 'void spin(void) { for (;;) __asm__ volatile(""); }\n'
PROGRAM = """
import ctypes, sys, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
ctypes.CDLL(sys.argv[1]).spin()
"""


@pytest.fixture
def library(tmp_path):
    (tmp_path / "spin.c").write_text(SPIN)
    command = ["gcc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "spin.so", tmp_path / "spin.c"]
    subprocess.run(command, check=True)
    return tmp_path / "spin.so"


@pytest.fixture
def process(library):
    with subprocess.Popen([sys.executable, "-c", PROGRAM, library], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def read_stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    places = read_code_places({pid})
    os.kill(pid, signal.SIGCONT)
    return places


def read_once_it_spins(process, library):
    while True:
        found = read_stopped(process.pid)
        if found and found[0][0]["path"] == str(library):
            return found


def test_only_the_executing_thread_is_traced_to_its_file(process, library):
    (trace,) = read_once_it_spins(process, library)
    assert not trace[0]["installed"]
    assert any(caller["installed"] for caller in trace[1:])


def test_code_is_read_where_its_file_has_it(process, library):
    (trace,) = read_once_it_spins(process, library)
    place = trace[0]["offset"]
    assert library.read_bytes()[place : place + CODE_BYTES].hex() == trace[0]["code"]


def test_files_that_are_not_installed_are_custom_code(process, library):
    program = "print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"ready\n"
        assert not maps_custom_code({other.pid})
        assert maps_custom_code({other.pid, process.pid})
        other.kill()


def test_of_a_process_that_is_gone_nothing_is_read():
    assert read_code_places({1 << 22}) == []
    assert not maps_custom_code({1 << 22})
    assert not repeats_pages(1 << 22, [[0, PAGE]])


@pytest.fixture
def map_at():
    """Maps these pages of one file one after the other."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    descriptor = os.memfd_create("pages")
    os.truncate(descriptor, 2 * PAGE)

    def run(*offsets):
        first = libc.mmap(None, len(offsets) * PAGE, 3, 0x22, -1, 0)
        for at, offset in enumerate(offsets):
            libc.mmap(first + at * PAGE, PAGE, 3, 0x11, descriptor, offset * PAGE)
        return first

    yield run
    os.close(descriptor)


@pytest.mark.parametrize(("offsets", "repeats"), [((0, 0), True), ((0, 1), False), ((1, 0), False), ((1, 0, 1), True)])
def test_page_at_two_addresses_of_an_output_is_found(map_at, offsets, repeats):
    first = map_at(*offsets)
    assert repeats_pages(os.getpid(), [[first, first + len(offsets) * PAGE]]) is repeats


def test_outputs_in_one_page_are_no_repetition(map_at):
    first = map_at(0)
    assert not repeats_pages(os.getpid(), [[first, first + 8], [first + 8, first + 64], [first, first + 64]])


def test_page_is_found_at_addresses_of_two_outputs(map_at):
    first, second = map_at(0), map_at(0)
    assert repeats_pages(os.getpid(), [[first, first + 8], [second, second + 8]])
