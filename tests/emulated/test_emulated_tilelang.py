"""TileLang programs on the emulated device: their kernels are compiled for the GPU, and not run."""

import shutil

import pytest
from emulated_corpus import open_doubling

KERNEL = """
import tilelang
import tilelang.language as T
import torch
from torch import nn


@tilelang.jit(out_idx=[1])
def make_double(size):
    @T.prim_func
    def double(x: T.Tensor((size,), "float32"), out: T.Tensor((size,), "float32")):
        with T.Kernel(T.ceildiv(size, 128), threads=128) as at:
            for i in T.Parallel(128):
                out[at * 128 + i] = x[at * 128 + i] + x[at * 128 + i]

    return double


class ModelNew(nn.Module):
    def forward(self, x):
        return make_double(x.numel())(x.contiguous())
"""


@pytest.fixture(scope="module")
def evaluate(build_cache, tmp_path_factory):
    pytest.importorskip("tilelang", reason="TileLang is not installed")
    if shutil.which("nvcc") is None:
        pytest.skip("TileLang needs nvcc")
    with open_doubling(build_cache, tmp_path_factory.mktemp("tilelang")) as evaluate_source:
        yield evaluate_source


@pytest.mark.slow
def test_kernels_are_compiled_and_only_a_gpu_can_evaluate_them(evaluate):
    evaluation = evaluate(KERNEL)
    assert evaluation.subject.language == "tilelang"
    assert (evaluation.outcome, "it needs a GPU" in evaluation.message) == ("not_run", True)
    assert any("compiled for the emulated GPU: double" in one.message for one in evaluation.findings)


@pytest.mark.slow
def test_kernel_refused_by_the_compiler_is_a_build_error(evaluate):
    evaluation = evaluate(KERNEL.replace("+ x[at * 128 + i]", "+ offset"))
    assert evaluation.outcome == "build_error", evaluation.message
    assert "offset" in evaluation.message
