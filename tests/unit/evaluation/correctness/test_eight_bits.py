"""Products in 8 bits are refused in problems of 16 bits; other orders and roundings of 16 bits are right."""

from functools import partial
from pathlib import Path

import pytest
import torch

from harness.domain import Outcome
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.refinement import compare_refined, refine_truth
from harness.evaluation.correctness.truth import copy_tensors, run_reference
from harness.problems.discovery import parse_problem
from harness.problems.inputs.kinds import find_kind
from harness.problems.loading import load_problem
from harness.sandbox.devices import open_device

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
ATTENTION = """
class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

def get_inputs():
    return [torch.randn(2, 3, 96, 32, dtype=torch.DTYPE) for _ in range(3)]

def get_init_inputs():
    return []
"""
IN_BLOCKS = """
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = OF_SCORES(q.float()) @ OF_SCORES(k.float()).transpose(-1, -2) / 32**0.5
        largest = scores.amax(-1, keepdim=True)
        weights = (scores - largest).exp()
        parts = zip(weights.split(32, -1), v.float().split(32, -2))
        out = sum(TO_ADD(OF_WEIGHTS(p) @ OF_VALUES(x)) for p, x in parts)
        return (out / weights.sum(-1, keepdim=True)).to(q.dtype)
"""
GATED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = (
            nn.Linear(*shape, bias=False, dtype=torch.DTYPE) for shape in ((96, 256), (96, 256), (256, 96))
        )

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

def get_inputs():
    return [torch.randn(61, 96, dtype=torch.DTYPE)]

def get_init_inputs():
    return []
"""
FUSED = (
    GATED.replace("class Model(", "class ModelNew(").split("    def forward")[0]
    + """
    def forward(self, x):
        x, up, gate = (OF_SCORES(one.float()) for one in (x, self.up.weight, self.gate.weight))
        gate, up = TO_ADD(x @ gate.T), x @ up.T
        return (OF_WEIGHTS(F.silu(gate) * up) @ OF_VALUES(self.down.weight.float()).T).to(torch.DTYPE)
"""
)
FORMS = """
def whole(x):
    return x.float()

def narrow(x):
    return x.to(torch.DTYPE).float()

def scaled(x):
    return x.abs().amax(-1, keepdim=True).clamp(min=1e-30)

def int8(x):
    return (x / scaled(x) * 127).round() / 127 * scaled(x)

def float8(x):
    return (x / scaled(x)).to(torch.float8_e4m3fn).float() * scaled(x)
"""
PLACES = ("OF_SCORES", "OF_WEIGHTS", "OF_VALUES", "TO_ADD")


def find_outcomes(problem, program, forms, dtype, kind, seeds=range(3)):
    for place, form in zip(PLACES, forms, strict=True):
        program = program.replace(place, form)
    loaded = load_problem(parse_problem(HEAD + problem.replace("DTYPE", dtype), Path("toy.py"), "tiny"), "full")
    reference = prepare_reference(loaded, open_device("cpu"), 1, 2)
    exec((HEAD + FORMS + program).replace("DTYPE", dtype), loaded.module.__dict__)
    candidate = loaded.make_model(1, torch.device("cpu"), entry="ModelNew")
    candidate.load_state_dict(reference.state)
    found = []
    for seed in seeds:
        inputs = reference.make_inputs(seed, kind)
        truth, refine = reference.truth_of(inputs), partial(refine_truth, reference, inputs=inputs)
        with torch.no_grad():
            outputs = run_reference(loaded, candidate, copy_tensors(inputs))
        found += compare_refined(reference, truth, outputs, kind, kind=find_kind(kind), refine=refine)[:1]
    return set(found)


PROBLEMS = pytest.mark.parametrize(("problem", "program"), [(ATTENTION, IN_BLOCKS), (GATED, FUSED)], ids=["qkv", "mlp"])


@PROBLEMS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["as_given", "varied", "peaked"])
@pytest.mark.parametrize(
    "forms",
    [("whole", "whole", "whole", "whole"), ("whole", "narrow", "whole", "narrow")],
    ids=["wider", "rounded_between"],
)
def test_other_roundings_of_16_bits_are_right(problem, program, dtype, kind, forms):
    assert find_outcomes(problem, program, forms, dtype, kind) == {None}


@PROBLEMS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "forms",
    [
        ("int8", "int8", "int8", "whole"),
        ("float8", "float8", "float8", "whole"),
        ("whole", "int8", "int8", "whole"),
        ("float8", "whole", "whole", "whole"),
        ("whole", "whole", "float8", "whole"),
        ("whole", "float8", "whole", "whole"),
    ],
    ids="-".join,
)
def test_products_of_8_bits_are_wrong(problem, program, dtype, forms):
    assert find_outcomes(problem, program, forms, dtype, "as_given") == {Outcome.WRONG_VALUE}
