"""Problems whose call is forward and backward, from the file to the verdict."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness.domain import Outcome
from harness.evaluation.problem_validation import admit_problem
from harness.evaluation.timing.paired import TimingPlan
from harness.problems.discovery import parse_problem
from harness.problems.loading import load_problem

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x, index):
        return torch.tanh(x * self.weight)[index]

columns = 48

def get_inputs():
    return [torch.randn(32, columns), torch.randperm(32)]

def get_init_inputs():
    return [columns]

BACKWARD = True
"""
CANDIDATE = """
import torch
from torch import nn

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, index):
        y = torch.tanh(x * weight)
        ctx.save_for_backward(x, weight, index, y)
        return y[index]

    @staticmethod
    def backward(ctx, gradient):
        x, weight, index, y = ctx.saved_tensors
        upstream = torch.zeros_like(x)
        upstream[index] = gradient
        inner = upstream * (1 - y * y)
        of_x, of_weight = inner * weight, (inner * x).sum(0)
        HOOK
        return of_x, of_weight, None

class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x, index):
        return RESULT
"""
APPLIED = "Scaled.apply(x, self.weight, index)"
QUICK = TimingPlan(budget_s=0.2, min_blocks=4, min_blocks_when_slow=2, warmup_calls=1, allow_load=True)


def read(text=PROBLEM):
    return parse_problem(text, Path("toy.py"), "tiny")


def write(hook="pass", result=APPLIED):
    return CANDIDATE.replace("HOOK", hook).replace("RESULT", result)


@pytest.mark.parametrize("dtype", [None, "bf16"])
@pytest.mark.quick(1)
def test_a_function_with_a_backward_of_its_own_is_correct(bench, dtype):
    problem = read() if dtype is None else read().in_precision(dtype)
    evaluation = bench.evaluate(write(), problem)
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert evaluation.correctness.trials[0].elements == 2 * 32 * 48 + 48
    assert evaluation.correctness.truth == "float64"


@pytest.mark.parametrize(
    "program",
    [
        write("of_x = of_x * 1.01"),
        write("of_weight = None"),
        write("of_x = torch.zeros_like(x)"),
        write("of_weight = (upstream * x).sum(0)"),
        write(result="torch.tanh(x * self.weight)[index].detach()"),
        write(result="Scaled.apply(x, self.weight.detach(), index)"),
    ],
    ids=["scaled", "no weight", "zeros", "derivative left out", "detached", "weight detached"],
)
@pytest.mark.quick(1)
def test_wrong_or_missing_gradients_are_wrong_values(bench, program):
    evaluation = bench.evaluate(program, read())
    assert evaluation.outcome is Outcome.WRONG_VALUE, evaluation.message


FROZEN = PROBLEM.replace("return torch", "x = x.detach()\n        return self.scale * torch").replace(
    "torch.randn(columns))", "torch.randn(columns))\n        self.scale = nn.Parameter(torch.randn(1), False)"
)


@pytest.mark.parametrize("detached", [True, False])
def test_gradients_that_the_reference_does_not_have_are_not_compared(bench, detached):
    body = FROZEN[FROZEN.index("class Model(") : FROZEN.index("columns = 48")].replace("Model(", "ModelNew(")
    candidate = "import torch\nfrom torch import nn\n" + body.replace(", False)", ")")
    problem = read(FROZEN)
    program = candidate if detached else candidate.replace("x = x.detach()", "pass")
    evaluation = bench.evaluate(program, problem)
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert admit_problem(load_problem(problem, "full"), torch.device("cpu"), 0).admitted


def test_a_message_names_the_parameter_whose_gradient_is_wrong(bench):
    message = bench.evaluate(write("of_weight = None"), read(), seed=1).message  # others: one gradient may be near zero
    assert message.startswith("output 2 weight: 48 of 48 elements wrong")


def test_a_program_without_the_parameters_of_the_reference_is_refused(bench):
    program = write().replace("self.weight = nn", "self.scale = nn").replace("self.weight", "self.scale")
    assert bench.evaluate(program, read()).outcome is Outcome.WRONG_SHAPE


@pytest.mark.slow
def test_the_gradient_of_the_output_is_secret_and_fresh_in_each_call(bench):
    remembers = "Scaled.kept = getattr(Scaled, 'kept', None) or [of_x, of_weight]; of_x, of_weight = Scaled.kept"
    assert bench.evaluate(write(remembers), read()).outcome is Outcome.WRONG_VALUE
    assumes_ones = "inner = torch.ones_like(x) * (1 - y * y); of_x, of_weight = inner * weight, (inner * x).sum(0)"
    assert bench.evaluate(write(assumes_ones), read()).outcome is Outcome.WRONG_VALUE


@pytest.mark.slow
def test_the_backward_pass_is_part_of_the_time(bench):
    large = read(PROBLEM.replace("columns = 48", "columns = 16384"))
    slow = write("for _ in range(60): torch.tanh(x)")
    quick, held_up = (bench.evaluate(one, large, time=True, plan=QUICK) for one in (write(), slow))
    assert quick.outcome is held_up.outcome is Outcome.CORRECT, quick.message
    assert held_up.timing.candidate_us > 3 * quick.timing.candidate_us


def test_a_problem_without_a_floating_output_has_no_backward():
    problem = read(PROBLEM.replace("torch.tanh(x * self.weight)[index]", "index + 1"))
    (check,) = admit_problem(load_problem(problem, "full"), torch.device("cpu"), 3).failed
    assert "no output is floating-point" in check.evidence


@pytest.mark.parametrize("name", ["layer_norm_backward", "swiglu_backward"])
@pytest.mark.slow
def test_the_reference_of_a_shipped_problem_is_correct_as_its_own_candidate(bench, name):
    path = Path(__file__).parents[2] / "reference_models" / "fused" / f"{name}.py"
    text = path.read_text().replace("tokens = 8192", "tokens = 97").replace("features = 4096", "features = 307")
    problem = replace(read(text), cases=())
    assert problem.backward
    evaluation = bench.evaluate(text.replace("class Model", "class ModelNew"), problem)
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
