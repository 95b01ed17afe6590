"""Compilers in the parent of all workers."""

from __future__ import annotations

import gc
import os
import sys

import pytest

from harness.languages.environment import may_change_compilers
from harness.worker.compiled_files import preload_compilers

WITH_POOL = """
import os

STARTED = os.environ.get("TORCH_WARM_POOL", "1") == "1"
"""


def test_a_compiler_starts_no_processes_that_workers_would_share(tmp_path, monkeypatch):
    (tmp_path / "compiler_with_pool.py").write_text(WITH_POOL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("TORCH_WARM_POOL", raising=False)
    preload_compilers(["compiler_with_pool", "compiler_that_is_missing"])
    gc.unfreeze()
    assert not sys.modules.pop("compiler_with_pool").STARTED
    assert "TORCH_WARM_POOL" not in os.environ


@pytest.mark.parametrize(
    "source",
    [
        'os.environ["TRITON_ALWAYS_COMPILE"] = "1"',
        'os.environ.setdefault("TORCHINDUCTOR_MAX_AUTOTUNE", "1")',
        "os.environ[name] = value",
        "os.environ.update(options)",
        "from os import environ",
        'os.putenv("PATH", "")',
    ],
)
def test_programs_that_may_change_what_compilers_read_are_recognised(source):
    assert may_change_compilers(source)


@pytest.mark.parametrize(
    "source",
    [
        'os.environ["PATH"] = "/usr/bin:" + os.environ.get("PATH", "")',
        'os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0a")',
        'tuned = os.environ.get("TRITON_TUNED")',
        'has_home = "CUDA_HOME" in os.environ',
        "x = torch.ones(3)",
    ],
)
def test_other_uses_of_the_environment_keep_compilers_preloaded(source):
    assert not may_change_compilers(source)
