"""Pages that a worker says it shares. Mapping them needs a GPU: tests/gpu."""

import ctypes
import os

import pytest
import torch

from harness.domain import CandidateFailure
from harness.sandbox.gpu.worker_memory import Stretch, WorkerMemory, repeats_memory
from harness.sandbox.replies import parse_pages

PAGE = 2 << 20
ARENA = {"device": 0, "arena_start": 1 << 40, "arena_local": 1 << 30, "arena_bytes": PAGE}


def test_pages_are_read_as_they_were_sent():
    assert parse_pages([[PAGE, PAGE], [2 * PAGE, 3 * PAGE]], 2) == [(PAGE, PAGE), (2 * PAGE, 3 * PAGE)]


@pytest.mark.parametrize(
    ("pages", "count"),
    [
        ([[0, PAGE], [3 * PAGE, PAGE]], 2),  # a gap
        ([[0, PAGE]], 2),
        ([[0, PAGE], [PAGE, PAGE]], 1),
        ([[0, PAGE // 2]], 1),  # no page is as small
        ([[-PAGE, PAGE]], 1),
        ([[0, 1 << 70]], 1),
        ([[0.0, PAGE]], 1),
        ([[True, PAGE]], 1),
        ([[0, PAGE, 0]], 1),
        ("pages", 0),
        (None, 0),
    ],
)
def test_pages_that_our_own_program_would_not_send_break_the_protocol(pages, count):
    with pytest.raises(CandidateFailure):
        parse_pages(pages, count)


def test_the_arena_is_known_from_the_beginning():
    memory = WorkerMemory(lambda address: [], **ARENA)
    assert memory.locate((1 << 40) + 256, 512) == Stretch((1 << 30) + 256, 512)
    assert memory.locate((1 << 40) + PAGE - 1, 2) is None
    assert memory.locate((1 << 40) - 1, 1) is None


def test_memory_that_is_not_shared_is_not_mapped():
    assert WorkerMemory(lambda address: [], **ARENA).map(0x7000, 64) is None


def test_descriptors_of_pages_elsewhere_than_asked_for_are_closed():
    opened = []

    def fetch(address):
        opened.append(os.memfd_create("page"))
        return [(address + PAGE, PAGE, opened[-1])]

    assert WorkerMemory(fetch, **ARENA).map(4 * PAGE, 64) is None
    for descriptor in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize("pages", [[0, 1, 2, 3], [0, 1, 2, 0]])
def test_a_page_at_two_addresses_is_found_and_left(pages):
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    step = 64 << 10
    start = libc.mmap(None, len(pages) * step, 3, 0x22, -1, 0)  # private and anonymous
    descriptor = os.memfd_create("pages")
    os.ftruncate(descriptor, len(pages) * step)
    for at, page in enumerate(pages):
        libc.mmap(start + at * step, step, 3, 0x11, descriptor, page * step)  # shared and fixed
    os.close(descriptor)
    memory = torch.frombuffer((ctypes.c_uint8 * (len(pages) * step)).from_address(start), dtype=torch.uint8)[8:]
    memory.random_()
    before = memory.clone()
    assert repeats_memory(memory) is (len(set(pages)) < len(pages))
    assert torch.equal(memory, before)
