"""Programs in plain PyTorch: no kernel is required, and what torch's compiler generates is theirs."""

import pytest

from harness.domain import Problem

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.randn(256, 512)]

def get_init_inputs():
    return []
"""
EAGER = PROBLEM.replace("class Model(", "class ModelNew(")
COMPILED = EAGER.replace("return torch.softmax(x, dim=-1)", "return run(x)") + (
    """
@torch.compile
def run(x):
    return torch.softmax(x, dim=-1)
"""
)
DECOY = COMPILED.replace("return run(x)", "run(x)\n        return torch.softmax(x, dim=-1)")
COMPILING = {"call_s": 300.0, "language": "torch"}  # seconds, where other processes keep all cores busy


def evaluate(bench, source, **settings):
    problem = Problem(name="softmax", suite="tiny", source=PROBLEM, requires_kernel=True)
    return bench.evaluate(source, problem, attribute_work=True, **settings)


def list_checks(evaluation):
    return {finding.check for finding in evaluation.findings}


def test_eager_torch_is_accepted_in_language_torch_and_has_no_custom_kernels(bench):
    evaluation = evaluate(bench, EAGER, language="torch")
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.custom == 0
    assert list_checks(evaluation).isdisjoint({"no_own_kernel", "decoy_kernel"})


@pytest.mark.slow
def test_compiled_graphs_are_own_in_language_torch_and_in_no_other(bench):
    evaluation = evaluate(bench, COMPILED, **COMPILING)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.custom > 0.01
    assert evaluation.work.without_custom == "changed"
    elsewhere = evaluate(bench, COMPILED, **COMPILING | {"language": "cpp"})
    assert elsewhere.outcome == "rejected"
    assert elsewhere.work.custom == 0


@pytest.mark.slow
def test_a_compiled_graph_whose_result_is_dropped_is_a_decoy(bench):
    evaluation = evaluate(bench, DECOY, **COMPILING)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.without_custom == "unchanged"
    assert "decoy_kernel" in list_checks(evaluation)


SETS_OPTIONS = """
import os

os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "1"
import torch
from torch import nn
from torch._inductor import config

assert config.max_autotune


class ModelNew(nn.Module):  # torch.compile reads the environment
    def forward(self, x, y):
        return x + y
"""


@pytest.mark.slow
def test_compiler_options_of_a_program_apply_despite_earlier_imports(bench):
    plain = SETS_OPTIONS.replace('os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "1"', "").replace("assert", "assert not")
    before = bench.evaluate(plain)
    assert before.outcome == "correct", before.message
    assert bench.forkserver.has_preloaded
    after = bench.evaluate(SETS_OPTIONS)
    assert after.outcome == "correct", after.message
    assert not bench.forkserver.has_preloaded
