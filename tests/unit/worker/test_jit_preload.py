"""Compilers in the parent of all workers."""

from __future__ import annotations

import gc
import os
import sys

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
