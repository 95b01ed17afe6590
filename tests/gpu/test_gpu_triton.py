"""Triton on a GPU: workers get what was compiled ahead or by the first worker of an evaluation."""

import pytest

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.randn(1 << 20, device="cuda")]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import os
from pathlib import Path

import torch
import triton
import triton.language as tl
from torch import nn

if any(Path(os.environ["TRITON_CACHE_DIR"]).rglob("*.cubin")):
    raise RuntimeError("compiled by an earlier worker")


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""


def test_a_kernel_is_compiled_in_the_first_worker_only(open_bench):
    pytest.importorskip("triton", reason="Triton comes with torch for CUDA")
    bench = open_bench(isolation="auto", device="cuda:0")
    for _ in range(2):  # the next evaluation begins without the files
        evaluation = bench.evaluate(CANDIDATE, PROBLEM)
        assert evaluation.outcome == "correct", evaluation.message
        notes = [finding.message for finding in evaluation.findings if finding.check == "profile"]
        assert notes == ["could not be profiled: RuntimeError: compiled by an earlier worker"]


COMPILED = "COMPILED = set(Path(os.environ['TRITON_CACHE_DIR']).rglob('*.cubin'))"
ONLY_AHEAD = CANDIDATE.replace(
    CANDIDATE[CANDIDATE.index("if any(") : CANDIDATE.index("@triton.jit")], f"{COMPILED}\n\n"
).replace(
    "        return out",
    """        if not COMPILED or set(Path(os.environ["TRITON_CACHE_DIR"]).rglob("*.cubin")) != COMPILED:
            raise RuntimeError("compiled by this worker")
        return out""",
)


def test_a_kernel_that_was_compiled_ahead_is_not_compiled_again(open_bench):
    pytest.importorskip("triton", reason="Triton comes with torch for CUDA")
    from harness.domain import Problem
    from harness.hardware.gpus import match_gpu_model

    bench = open_bench(isolation="auto", device="cuda:0")
    model = match_gpu_model(bench.device.chip)
    files = bench.compile_ahead(ONLY_AHEAD, Problem(name="p", suite="s", source=PROBLEM), model.name)
    assert bench.evaluate(ONLY_AHEAD, PROBLEM, language="triton").outcome == "runtime_error"
    evaluation = bench.evaluate(ONLY_AHEAD, PROBLEM, language="triton", compiled=files)
    assert evaluation.outcome == "correct", evaluation.message
