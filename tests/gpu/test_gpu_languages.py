"""Languages beside CUDA and Triton on a GPU. A package that is missing or cannot be imported skips its test."""

import pytest

from harness.domain import Problem
from harness.languages import LANGUAGES

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)


def get_inputs():
    return [torch.randn(8192, 8192)]


def get_init_inputs():
    return []
"""
COMPILED = PROBLEM.replace("class Model(", "@torch.compile\ndef chain(x):\n    return RESULT\n\n\nclass ModelNew(")
RESULT = "torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)"
COMPILED = COMPILED.replace(RESULT, "chain(x)").replace("RESULT", RESULT)
HELION = PROBLEM.replace(
    "class Model(",
    """import helion
import helion.language as hl


@helion.kernel(config=helion.Config(block_sizes=[4, 512], num_warps=4), static_shapes=True)
def chain(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size()):
        out[tile] = torch.relu(torch.tanh(x[tile] * 1.5 + 0.25) * 2.0 - 0.125)
    return out


class ModelNew(""",
).replace(f"return {RESULT}\n\n\ndef get_inputs", "return chain(x)\n\n\ndef get_inputs")
CUTE = PROBLEM.replace(
    "class Model(",
    """import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def chain_kernel(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 256 + thread
    if at < cute.size(out):
        exponential = cute.math.exp(2.0 * (x[at] * 1.5 + 0.25))
        value = (1.0 - 2.0 / (exponential + 1.0)) * 2.0 - 0.125
        out[at] = value if value > 0.0 else 0.0


@cute.jit
def chain(x: cute.Tensor, out: cute.Tensor):
    chain_kernel(x, out).launch(grid=[cute.ceil_div(cute.size(out), 256), 1, 1], block=[256, 1, 1])


compiled = {}


def run(x):
    out = torch.empty_like(x)
    views = [from_dlpack(one.reshape(-1)) for one in (x.contiguous(), out)]
    if x.shape not in compiled:
        compiled[x.shape] = cute.compile(chain, *views)
    compiled[x.shape](*views)
    return out


class ModelNew(""",
).replace(f"return {RESULT}\n\n\ndef get_inputs", "return run(x)\n\n\ndef get_inputs")
TILELANG = PROBLEM.replace(
    "class Model(",
    """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def make_chain(size):
    @T.prim_func
    def chain(x: T.Tensor((size,), "float32"), out: T.Tensor((size,), "float32")):
        with T.Kernel(T.ceildiv(size, 256), threads=256) as at:
            for i in T.Parallel(256):
                out[at * 256 + i] = T.max(T.tanh(x[at * 256 + i] * 1.5 + 0.25) * 2.0 - 0.125, 0.0)

    return chain


class ModelNew(""",
).replace(
    f"return {RESULT}\n\n\ndef get_inputs",
    "return make_chain(x.numel())(x.contiguous().reshape(-1)).reshape(x.shape)\n\n\ndef get_inputs",
)


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=120.0, load_s=200.0)


def require(language):
    missing = LANGUAGES[language].find_missing(False)
    if missing:
        pytest.skip(missing)


def evaluate(bench, source, language, **settings):
    problem = Problem(name="chain", suite="tiny", source=PROBLEM, requires_kernel=True)
    return bench.evaluate(source, problem, language=language, **settings)


def test_a_compiled_graph_is_own_in_language_torch_and_in_no_other(gpu_bench):
    evaluation = evaluate(gpu_bench, COMPILED, "torch", time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup > 1.5
    assert evaluation.work.custom > 0.5
    assert evaluation.work.without_custom == "changed"
    assert evaluation.work.custom_kernels[0].startswith("triton_")
    assert evaluate(gpu_bench, COMPILED, "cuda").outcome == "rejected"


def test_a_helion_kernel_does_the_work(gpu_bench):
    require("helion")
    evaluation = evaluate(gpu_bench, HELION, "helion", time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup > 1.5
    assert evaluation.work.custom > 0.5
    assert evaluation.work.without_custom == "changed"
    assert evaluation.work.custom_kernels == ("_helion_chain*",)


def test_a_kernel_of_cute_dsl_does_the_work(gpu_bench):
    require("cute")
    evaluation = evaluate(gpu_bench, CUTE, "cute", time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup > 1.0
    assert evaluation.work.custom > 0.5
    assert evaluation.work.without_custom == "changed"


def test_a_kernel_of_tilelang_does_the_work(gpu_bench):
    require("tilelang")
    evaluation = evaluate(gpu_bench, TILELANG, "tilelang", time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup > 1.0
    assert evaluation.work.custom > 0.5
    assert evaluation.work.without_custom == "changed"
