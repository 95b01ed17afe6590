"""What a candidate may take: memory in every way that there is, processes, scratch, processor time, within each kind of
isolation, since each limits them in its own way. After every attempt an honest candidate is called as if nothing had
been."""

import pytest

from harness.domain import CandidateFailure

MIB = 1 << 20
LIMITS = {"memory_bytes": 400 * MIB, "scratch_bytes": 64 * MIB, "processes": 100, "cpu_s": 30}
KINDS = ("private_root", "filters")

HEAD = """
import mmap, os, signal, time, torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, a, b):
"""
GOOD = f"{HEAD}        return a + b\n"

HEAP = "kept = [bytearray(1 << 20) for _ in range(2000)]"
MEMORY_FILES = """
        kept = [os.memfd_create("kept") for _ in range(60)]
        for file in kept:
            os.write(file, bytes(32 << 20))
            time.sleep(0.02)
"""
SHARED_PAGES = """
        kept = []
        for _ in range(30):
            kept.append(mmap.mmap(-1, 64 << 20))
            for place in range(0, 64 << 20, 4096):
                kept[-1][place] = 1
            os.fork() or time.sleep(100)
"""
MANY_PROCESSES = """
        for _ in range(12):
            if os.fork() == 0:
                kept = b"x" * (100 << 20)
                time.sleep(100)
        time.sleep(100)
"""
PROCESSES = """
        for _ in range(400):
            if os.fork() == 0:
                time.sleep(100)
        time.sleep(4)
"""
SCRATCH = """
        for number in range(20):
            with open(f"part-{number}", "wb") as file:
                file.write(bytes(16 << 20))
            time.sleep(0.05)
        time.sleep(3)
"""
HIDDEN_SCRATCH = """
        os.mkdir("hidden")
        with open("hidden/part", "wb") as file:
            file.write(bytes(60 << 20))
        os.chmod("hidden", 0)
        with open("part", "wb") as file:
            file.write(bytes(60 << 20))
        time.sleep(4)
"""
PROCESSOR_TIME = """
        while True:
            pass
"""


@pytest.fixture(scope="module")
def benches(open_isolated_bench):
    opened = {}

    def choose(kind):
        if kind not in opened:
            opened[kind] = open_isolated_bench(kind)
        return opened[kind]

    return choose


@pytest.fixture(params=KINDS)
def bench(request, benches):
    return benches(request.param)


def fail(bench, body, **limits):
    """How a candidate with that body in its call ends; then an honest one is called."""
    with pytest.raises(CandidateFailure) as caught:
        bench.call_once(f"{HEAD}        {body.strip()}\n        return a + b\n", **(LIMITS | limits))
    assert bench.call_once(GOOD, **LIMITS).outputs.tensors[0].shape == (64, 65)
    return caught.value


@pytest.mark.parametrize(
    "body",
    [HEAP, MEMORY_FILES, SHARED_PAGES, MANY_PROCESSES],
    ids=["heap", "memory files", "shared pages", "processes"],
)
@pytest.mark.quick(4)
def test_memory_is_limited_in_every_way_of_taking_it(bench, body):
    assert fail(bench, body, processes=200).outcome == "out_of_memory"


@pytest.mark.parametrize("body", [PROCESSES, SCRATCH], ids=["processes", "scratch"])
@pytest.mark.quick(2)
def test_too_many_processes_or_files_end_the_candidate(bench, body):
    plenty_bytes = 4000 * MIB  # a hundred processes hold some hundred megabytes together
    assert fail(bench, body, memory_bytes=plenty_bytes).outcome == "runtime_error"


@pytest.mark.slow
def test_a_folder_that_its_owner_cannot_read_does_not_hide_files(benches):
    failure = fail(benches("filters"), HIDDEN_SCRATCH)
    assert failure.outcome == "runtime_error"


@pytest.mark.quick(1)
def test_processor_time_is_limited_and_the_verdict_says_so(bench):
    failure = fail(bench, PROCESSOR_TIME, cpu_s=1)
    assert failure.outcome == "runtime_error"
    assert "SIGXCPU" in failure.message
