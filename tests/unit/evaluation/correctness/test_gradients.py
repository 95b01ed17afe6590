"""Gradients: forms of one backward pass that differ where it cancels, and backward passes that leave out a term."""

from functools import partial
from pathlib import Path

import pytest
import torch

from harness.domain import Outcome
from harness.evaluation.correctness.precision import RandomRoundings
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.refinement import compare_refined, refine_truth
from harness.evaluation.correctness.truth import copy_tensors, run_reference
from harness.problems.discovery import parse_problem
from harness.problems.inputs.kind import may_be_rounded
from harness.problems.inputs.kinds import find_kind
from harness.problems.loading import load_problem
from harness.sandbox.devices import open_device

CPU = torch.device("cpu")
HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
FORWARD = "\ndef get_init_inputs():\n    return []\n"
TAIL = FORWARD + "\nBACKWARD = True\n"
WRONG_VALUE = Outcome.WRONG_VALUE
ATTENTION = """
class Model(nn.Module):
    def forward(self, q, k, v):
        return (q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))).softmax(-1) @ v

def get_inputs():
    return [torch.randn(2, 33, 16) for _ in range(3)]
"""
LIBRARY = """
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
"""
RECOMPUTED = """
class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        scores = q.float() @ k.float().transpose(-1, -2) / math.sqrt(q.size(-1))
        largest = scores.amax(-1, keepdim=True)
        sums = (scores - largest).exp().sum(-1, keepdim=True)
        out = (((scores - largest).exp() / sums) @ v.float()).to(q.dtype)
        ctx.save_for_backward(q, k, v, out, largest + sums.log())
        return out

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, out, normaliser = ctx.saved_tensors
        q32, k32, v32, g32 = q.float(), k.float(), v.float(), gradient.float()
        p = (q32 @ k32.transpose(-1, -2) / math.sqrt(q.size(-1)) - normaliser).exp()
        delta = (g32 * out.float()).sum(-1, keepdim=True)
        of_scores = p * (g32 @ v32.transpose(-1, -2) - delta) / math.sqrt(q.size(-1))
        of_q, of_k, of_v = of_scores @ k32, of_scores.transpose(-1, -2) @ q32, p.transpose(-1, -2) @ g32
        HOOK
        return of_q.to(q.dtype), of_k.to(q.dtype), of_v.to(q.dtype)

class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return Recomputed.apply(q, k, v)
"""
NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(48)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(64, 48)]
"""
BY_HAND = """
class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        mean, scale = x.mean(-1, keepdim=True), (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
        ctx.save_for_backward(x, weight, mean, scale)
        return (x - mean) * scale * weight + bias

    @staticmethod
    def backward(ctx, gradient):
        x, weight, mean, scale = ctx.saved_tensors
        HOOK
        normal, inner = (x - mean) * scale, gradient * weight
        of_x = scale * (inner - inner.mean(-1, keepdim=True) - normal * (inner * normal).mean(-1, keepdim=True))
        return of_x, (gradient * normal).sum(0), gradient.sum(0)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(48)

    def forward(self, x):
        return Norm.apply(x, self.norm.weight, self.norm.bias)
"""


def find_outcomes(problem, program, kind, seeds, dtype=None):
    """The outcomes of calls with inputs of one kind."""
    parsed = parse_problem(HEAD + problem + TAIL, Path("toy.py"), "tiny")
    loaded = load_problem(parsed if dtype is None else parsed.in_precision(dtype), "full")
    reference = prepare_reference(loaded, open_device("cpu"), 1, 2)
    exec(HEAD + program, loaded.module.__dict__)
    candidate = loaded.make_model(1, CPU, entry="ModelNew")
    candidate.load_state_dict(reference.state, strict=False)
    found = []
    for seed in seeds:
        inputs = reference.make_inputs(seed, kind)
        outputs = run_reference(loaded, candidate, copy_tensors(inputs))
        refine = partial(refine_truth, reference, inputs=inputs, kind=find_kind(kind))
        truth = reference.truth_of(inputs)
        found += compare_refined(reference, truth, outputs, kind, kind=find_kind(kind), refine=refine)[:1]
    return found


@pytest.mark.parametrize("kind", ["peaked", "scaled", "varied", "as_given"])
@pytest.mark.parametrize("program", [LIBRARY, RECOMPUTED.replace("HOOK", "pass")], ids=["library", "recomputed"])
@pytest.mark.parametrize("dtype", [None, "bf16", "fp16"])
def test_another_form_of_a_backward_pass_that_cancels_is_right(program, kind, dtype):
    assert set(find_outcomes(ATTENTION, program, kind, range(24), dtype)) == {None}


PEAKS = """
class Model(nn.Module):
    def forward(self, x):
        return x.amax(dim=1)

def get_inputs():
    return [torch.randn(64, 48)]
"""


@pytest.mark.parametrize(("kind", "outcome"), [("ties", WRONG_VALUE), ("as_given", None), ("ordered", None)])
def test_the_gradient_of_equal_peaks_counts_where_ties_are_declared(kind, outcome):
    first = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x.max(dim=1).values\n"
    assert set(find_outcomes(PEAKS, PEAKS.replace("Model(", "ModelNew("), kind, range(6))) == {None}
    assert set(find_outcomes(PEAKS, first, kind, range(6))) == {outcome}


def test_a_backward_pass_may_leave_roundings_where_another_cancels_exactly():
    one_key = ATTENTION.replace(
        "torch.randn(2, 33, 16) for _ in range(3)]", "torch.randn(2, size, 16) for size in (33, 1, 1)]"
    )
    assert set(find_outcomes(one_key, RECOMPUTED.replace("HOOK", "pass"), "as_given", range(4))) == {None}
    wrong = RECOMPUTED.replace("HOOK", "of_q = of_q + 1e-4")
    assert set(find_outcomes(one_key, wrong, "as_given", range(2))) == {WRONG_VALUE}


WRONG = {
    "no sum": RECOMPUTED.replace(" - delta", ""),
    "half of the sum": RECOMPUTED.replace(" - delta", " - delta / 2"),
    "the sum of few columns": RECOMPUTED.replace("(g32 * out.float())", "(g32 * out.float())[..., :12]"),
    "zeros": RECOMPUTED.replace("HOOK", "of_q = torch.zeros_like(of_q)"),
    "first rows": RECOMPUTED.replace("HOOK", "of_v[:, 30:] = 0"),
    "no scale": RECOMPUTED.replace("HOOK", "of_k = of_k * math.sqrt(q.size(-1))"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_a_backward_pass_without_a_term_is_wrong(name, dtype):
    program = WRONG[name].replace("HOOK", "pass")
    assert set(find_outcomes(ATTENTION, program, "as_given", range(3), dtype)) == {WRONG_VALUE}


def test_a_backward_pass_without_a_term_is_wrong_where_it_cancels():
    for kind in ("peaked", "scaled"):
        assert WRONG_VALUE in find_outcomes(ATTENTION, WRONG["no sum"].replace("HOOK", "pass"), kind, range(12))


LIMITED = {
    "fixed point": "gradient = (gradient.double() * 2**20).round().float() / 2**20",
    "limited": "gradient = gradient.clamp(-7, 7)",
    "small ones left out": "gradient = gradient * (gradient.abs() > 1e-4)",
}


@pytest.mark.parametrize("name", LIMITED)
def test_gradients_of_outputs_have_other_sizes_than_normal_draws(name):
    program = BY_HAND.replace("HOOK", LIMITED[name])
    assert WRONG_VALUE in find_outcomes(NORM, program, "scaled", range(12))


@pytest.mark.parametrize("kind", ["scaled", "varied", "biased", "contrasted"])
def test_a_backward_pass_is_right_for_gradients_of_other_sizes(kind):
    assert set(find_outcomes(NORM, BY_HAND.replace("HOOK", "pass"), kind, range(24))) == {None}


def test_random_roundings_move_results_of_arithmetic_only():
    values = torch.rand(1000) + 1
    with RandomRoundings(1):
        moved, kept = values * 3, values.clone().clamp(min=0)[100:]
    assert torch.equal(kept, values[100:])
    assert 0 < float((moved / (values * 3) - 1).abs().max()) < 4 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("settings", [TAIL, FORWARD])
def test_inputs_are_rounded_only_where_no_gradients_are_asked_for(settings):
    loaded = load_problem(parse_problem(HEAD + NORM + settings, Path("toy.py"), "tiny"), "full")
    traits = prepare_reference(loaded, open_device("cpu"), 1, 2).traits
    assert may_be_rounded(traits) == (settings == FORWARD)
