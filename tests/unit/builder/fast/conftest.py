"""A builder for each strategy, whose headers are precompiled once for all tests and processes of the session."""

import os
import time

import pytest

from harness.builder.builder import Builder
from harness.builder.fast.prebuilt_cache import NOT_YET, PrebuiltCache, strip_name
from harness.builder.runner import MemoryGate, Runner
from harness.builder.toolchain import probe_toolchain
from harness.builder.torch_ninja import read_plan, write_plan
from harness.domain import BuildRequest

OPTIONS = {"environment": lambda: dict(os.environ), "timeout_s": 1500.0}


def run_plainly(command, *, readable, writable):
    return list(command)


@pytest.fixture(scope="session")
def fast(build_cache):
    """Makes the headers at the first request."""
    return Builder(cache=build_cache, toolchain=probe_toolchain(), wrap=run_plainly, **OPTIONS)


@pytest.fixture(scope="session")
def plain(build_cache):
    """In a cache of its own: the strategy is no part of a library's key."""
    return Builder(cache=build_cache / "plain", toolchain=probe_toolchain(), wrap=run_plainly, fast=False, **OPTIONS)


@pytest.fixture(scope="session")
def prebuilt_cache(build_cache):
    """That of `fast`."""
    runner = Runner(wrap=run_plainly, readable=(), **OPTIONS)
    return PrebuiltCache(build_cache / "kits", probe_toolchain(), runner, MemoryGate())


@pytest.fixture(scope="session")
def precompiled(prebuilt_cache, tmp_path_factory):
    """Both headers of host code without flags of its own, which are made after several requests."""
    folder = tmp_path_factory.mktemp("plan")
    write_plan(BuildRequest(name="p", cpp_sources=("",)), folder)
    plan = read_plan(folder)
    for find in (prebuilt_cache.find_precompiled, prebuilt_cache.find_precompiled_host):
        while (found := find(plan["cxx"], strip_name(plan["cflags"]))) == NOT_YET:
            time.sleep(0.5)
        assert not isinstance(found, str), found
