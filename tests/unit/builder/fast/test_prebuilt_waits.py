"""Parts that are made once count against no build's time limit."""

import os
import threading
import time

import pytest

from harness.builder.builder import Builder
from harness.builder.fast import prebuilt_cache
from harness.builder.fast.prebuilt_cache import PrebuiltCache
from harness.builder.runner import MemoryGate, Runner
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest, HarnessError

BUILD_LIMIT_S, MAKING_S = 0.05, 0.2


@pytest.fixture
def cache(tmp_path):
    def run_plainly(command, *, readable, writable):
        return list(command)

    runner = Runner(wrap=run_plainly, readable=(), environment=dict, timeout_s=BUILD_LIMIT_S)
    return PrebuiltCache(tmp_path, probe_toolchain(), runner, MemoryGate())


def find(cache):
    def make(work):
        cache.compile(["/bin/sh", "-c", f"sleep {MAKING_S}; echo > made"], work)

    return cache.find("emulator", ["flags"], make)


def test_a_part_may_take_longer_than_a_build(cache):
    waits = []

    def wait():
        time.sleep(MAKING_S / 4)
        assert (find(cache) / "made").exists()
        waits.append(cache.take_waited_s())

    other = threading.Thread(target=wait)
    other.start()
    assert (find(cache) / "made").exists()
    assert cache.take_waited_s() >= MAKING_S
    assert cache.take_waited_s() == 0.0
    other.join()
    assert waits[0] >= MAKING_S / 4
    find(cache)
    assert cache.take_waited_s() == 0.0


def test_a_part_that_was_not_made_in_time_is_tried_again(cache, monkeypatch):
    monkeypatch.setattr(prebuilt_cache, "LIMIT_S", BUILD_LIMIT_S)
    with pytest.raises(HarnessError, match="not precompiled within"):
        find(cache)
    monkeypatch.undo()
    assert (find(cache) / "made").exists()


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_build_does_not_wait_for_headers_that_were_made_ahead(tmp_path):
    builder = Builder(
        cache=tmp_path,
        toolchain=probe_toolchain(),
        wrap=lambda command, **_: list(command),
        environment=lambda: dict(os.environ),
    )
    builder.make_headers()
    kernel = "__global__ void scale(float* x) { *x *= 2; }"
    source = f"{kernel}\nvoid run(torch::Tensor x) {{ scale<<<1, 1>>>(x.data_ptr<float>()); }}"
    bound = {"cpp_sources": ("void run(torch::Tensor x);",), "functions": (("run", ""),)}
    result = builder.build(BuildRequest(name="ahead", cuda_sources=(source,), **bound))
    assert (result.status, result.strategy, result.waited_s) == ("built", "fast", 0.0), result.log
