"""Languages beside CUDA and Triton on a GPU. A package that is not installed skips its test."""

import pytest

from harness.domain import Problem

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


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(confinement="auto", device="cuda:0", call_s=120.0, load_s=200.0)


def judge(bench, source, language, **settings):
    problem = Problem(name="chain", suite="tiny", source=PROBLEM, requires_kernel=True)
    return bench.judge(source, problem, language=language, **settings)


def test_a_compiled_graph_is_own_in_language_torch_and_in_no_other(gpu_bench):
    evaluation = judge(gpu_bench, COMPILED, "torch", time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup > 1.5
    assert evaluation.work.own > 0.5
    assert evaluation.work.without_own == "changed"
    assert evaluation.work.own_kernels[0].startswith("triton_")
    assert judge(gpu_bench, COMPILED, "cuda").outcome == "rejected"
