"""CuTe DSL programs on the emulated device: their kernels are compiled for the GPU, and not run."""

import pytest
from emulated_corpus import open_doubling

KERNEL = """
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from torch import nn


@cute.kernel
def double_kernel(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 128 + thread
    if at < cute.size(out):
        out[at] = x[at] + x[at]


@cute.jit
def double(x: cute.Tensor, out: cute.Tensor):
    double_kernel(x, out).launch(grid=[cute.ceil_div(cute.size(out), 128), 1, 1], block=[128, 1, 1])


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double(from_dlpack(x.contiguous()), from_dlpack(out))
        return out
"""


@pytest.fixture(scope="module")
def evaluate(build_cache, tmp_path_factory):
    pytest.importorskip("cutlass.cute", reason="CuTe DSL is not installed")
    with open_doubling(build_cache, tmp_path_factory.mktemp("cute")) as evaluate_source:
        yield evaluate_source


@pytest.mark.slow
def test_kernels_are_compiled_and_only_a_gpu_can_evaluate_them(evaluate):
    evaluation = evaluate(KERNEL)
    assert evaluation.subject.language == "cute"
    assert (evaluation.outcome, "it needs a GPU" in evaluation.message) == ("not_run", True)
    assert any("compiled for the emulated GPU: double_kernel" in one.message for one in evaluation.findings)


@pytest.mark.slow
def test_kernel_refused_by_the_compiler_is_a_build_error(evaluate):
    evaluation = evaluate(KERNEL.replace("x[at] + x[at]", "x[at] + offset"))
    assert evaluation.outcome == "build_error", evaluation.message
    assert "offset" in evaluation.message
