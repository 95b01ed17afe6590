"""What a reference costs, and that finding it out imports no compiler."""

import subprocess
import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from harness.problems.operator_costs import OperatorCosts

CALLS = {
    "product": lambda: torch.ones(8, 4) @ torch.ones(4, 6),
    "linear": lambda: torch.nn.functional.linear(torch.ones(8, 4), torch.ones(6, 4), torch.ones(6)),
    "convolution": lambda: torch.nn.functional.conv2d(torch.ones(2, 3, 8, 8), torch.ones(5, 3, 3, 3)),
    "attention": lambda: torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, 8, 16)] * 3),
    "none": lambda: torch.ones(3).exp(),
}


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", CALLS)
def test_operations_are_counted_as_torch_counts_them(name, context):
    with torch.no_grad(), FlopCounterMode(display=False) as expected:
        CALLS[name]()
    with context(), OperatorCosts() as costs:
        CALLS[name]()
    assert costs.flops == expected.get_total_flops()
    assert costs.elements > 0


def test_an_operator_whose_formula_rejects_its_arguments_counts_no_operations(monkeypatch):
    def reject(*_arguments, **_options):
        raise AssertionError("shapes are incompatible")

    monkeypatch.setitem(flop_registry, torch.ops.aten.mm, reject)
    with torch.no_grad(), OperatorCosts() as costs:
        torch.ones(8, 4) @ torch.ones(4, 6)
    assert costs.flops == 0 and costs.elements > 0


EVALUATED = """
import random, sys
import torch
from harness.domain import Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.other_states import watch_operators
from harness.evaluation.correctness.variations import find_nearby
from harness.evaluation.timing.roofline import count_traffic
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

source = '''
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        return torch.softmax(x @ x, -1)[y]

def get_inputs():
    return [torch.randn(8, 8), torch.randint(0, 8, (4,))]

def get_init_inputs():
    return []
'''
loaded = load_problem(Problem(name="p", suite="s", source=source), "full")
print(loaded.describe_inputs())
reference = prepare_reference(loaded, CpuDevice(), 1, 2)
inputs = reference.make_inputs(3)
watch_operators(reference, inputs), find_nearby(reference, inputs, random.Random(1)), count_traffic(reference, 3)
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""


@pytest.mark.slow
def test_an_evaluation_imports_no_compiler():
    done = subprocess.run([sys.executable, "-c", EVALUATED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(('float32', (8, 8)), ('int64', (4,)))", "[]"]


DESCRIBED = """
import inspect, sys
from pathlib import Path
import torch
from harness.evaluation.cases import list_runs, put_smallest_first
from harness.problems.discovery import parse_problem
from harness.problems.loading import load_problem
from harness.problems.operators import replace_compiler

source = '''
import torch
from torch import nn

rows = 8

class Model(nn.Module):
    def forward(self, *inputs):
        return inputs

def get_inputs():
    x = torch.randn(rows, 8, dtype=torch.bfloat16) * 0.1
    mask = torch.tril(torch.ones(8, 8)).bool().masked_fill(torch.rand(8, 8) > 0.5, False)
    offsets = torch.cat([torch.zeros(1), torch.cumsum(torch.arange(rows), 0)]).int()
    weights = torch.softmax(torch.sigmoid(torch.randn(rows, 4)).log(), dim=-1)
    return [x, mask, offsets, weights, torch.nn.functional.normalize(torch.empty(rows, 3).normal_() / 3, dim=-1)]

def get_init_inputs():
    return []

CASES = [{"name": "long", "sizes": {"rows": 99}}, {"name": "given"}, {"name": "short", "sizes": {"rows": 2}}]
'''
problem = parse_problem(source, Path("toy.py"), "mine")
print([run.name for _, run in put_smallest_first(list_runs(problem, "full", 1), "full")])
print(load_problem(problem, "full").describe_inputs())
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules])
with replace_compiler(torch.device("meta")):
    inspect.getmodule(torch.rand)
    print(type(sys.modules["torch._dynamo"]).__name__, end=" ")
    from torch._dynamo import is_compiling
    print(type(sys.modules["torch._dynamo"]).__name__, end=" ")
print(sys.modules["torch._dynamo"] is torch._dynamo, torch.compile(torch.nn.ReLU(), backend="eager")(torch.ones(1)))
"""


@pytest.fixture(scope="module")
def described():
    done = subprocess.run([sys.executable, "-c", DESCRIBED], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_inputs_are_measured_and_described_without_the_compiler(described):
    shapes = "(('bfloat16', (8, 8)), ('bool', (8, 8)), ('int32', (9,)), ('float32', (8, 4)), ('float32', (8, 3)))"
    assert described[:3] == ["['short', 'given', 'long']", shapes, "[]"]


@pytest.mark.slow
def test_problem_that_uses_the_compiler_gets_it_on_the_meta_device(described):
    assert described[3] == "_StandIn module True tensor([1.])"


def test_operations_count_for_the_dtype_that_is_multiplied():
    with OperatorCosts() as costs:
        for dtype in (torch.float32, torch.bfloat16):
            torch.ones(2, 3, dtype=dtype) @ torch.ones(3, 4, dtype=dtype)
        torch.nn.functional.linear(torch.ones(5, 3), torch.ones(4, 3), torch.ones(4))
    assert costs.flops_by_dtype == {"float32": 2 * 2 * 3 * 4 + 2 * 5 * 3 * 4, "bfloat16": 2 * 2 * 3 * 4}
    assert costs.flops == sum(costs.flops_by_dtype.values())
