"""Which problems are fit to be scored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from harness.domain import Problem
from harness.evaluation.problem_validation import admit_problem
from harness.problems.discovery import find_suite
from harness.problems.loading import load_problem

CPU = torch.device("cpu")
CORE = Path(__file__).parents[3] / "reference_models" / "core"

pytestmark = pytest.mark.usefixtures("one_thread")


SOURCE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(40))

    def forward(self, x):
        return FORWARD

def get_inputs():
    return INPUTS

def get_init_inputs():
    return []
"""


def admit(forward: str, inputs: str = "[torch.randn(30, 40)]", distributions: tuple[str, ...] = ("as_given",)):
    source = SOURCE.replace("FORWARD", forward).replace("INPUTS", inputs)
    problem = Problem(name="toy", suite="mine", source=source, distributions=distributions)
    return admit_problem(load_problem(problem, "full"), CPU, seed=7)


def failed_names(*args: object, **kwargs: object) -> list[str]:
    return [check.name for check in admit(*args, **kwargs).failed]


QUICK_CORE = ("softmax", "cross_entropy")


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(one, id=one.name, marks=() if one.name in QUICK_CORE else pytest.mark.slow)
        for one in find_suite(CORE)
    ],
)
def test_every_core_problem_is_admitted_on_its_small_workload(problem):
    admission = admit_problem(load_problem(problem, "small"), CPU, seed=3)
    assert admission.failed == ()
    assert len(admission.checks) >= 10


def test_an_honest_problem_is_admitted_with_evidence_for_each_check():
    admission = admit("x * self.weight")
    assert admission.admitted
    assert all(check.evidence for check in admission.checks)
    assert {"zeros", "constant", "identity", "stale buffer", "99 % partial", "coarser format"} <= {
        check.name for check in admission.checks
    }


@pytest.mark.parametrize(
    ("forward", "fake"),
    [
        ("x * 0", "zeros"),
        ("torch.ones_like(x) * self.weight[0]", "constant"),
        ("x + 0.0", "identity"),
        ("x[:, :1].expand(-1, 40) + 0.0", "identity"),
        ("(x * 0 + self.weight)", "stale buffer"),
        ("torch.cat([x.flatten(), torch.zeros(100)])", "99 % partial"),
        ("x.sign()", "coarser format"),
        ("x.sign().long() * 0 + 1", "constant"),
        ("(x.sum(), x * self.weight * 0)", "zeros"),
    ],
)
@pytest.mark.quick(5)
def test_a_problem_that_a_fake_would_pass_is_rejected(forward, fake):
    inputs = "[torch.randn(30, 1)]" if "expand" in forward else "[torch.randn(30, 40)]"
    assert fake in failed_names(forward, inputs)


def test_an_output_that_is_an_input_broadcast_is_rejected():
    assert failed_names("x.expand(30, 40) * 1.0", "[torch.randn(30, 1)]") == ["identity"]


def test_each_output_is_faked_alone():
    (check,) = admit("(x * self.weight, torch.zeros(5))").failed[:1]
    assert check.name == "zeros"
    assert check.evidence.startswith("output 1: accepted")
    assert "or leave it out" in check.evidence


@pytest.mark.parametrize(
    "forward",
    [
        "tuple(x.topk(3, dim=1))",
        "x.argmax(dim=1)",
        "x > 0.5",
        "x.sum() > 0",
        "(x * self.weight, x[:, :0], x[0].argmax(), None, 3)",
        "torch.fft.rfft(x * self.weight)",
        "torch.histc(x, 5).int()",
        "(x * self.weight).masked_fill(torch.ones(30, 40).triu(1) > 0, -torch.inf)",
    ],
)
def test_small_integer_boolean_empty_complex_and_masked_outputs_are_admitted(forward):
    admission = admit(forward)
    assert admission.admitted, admission.failed


def test_an_input_that_is_equal_for_some_seeds_is_admitted():
    assert admit("x * self.weight", "[torch.randint(1, 3, ())]").failed == ()


def test_complex_inputs_are_admitted():
    assert admit("(x.real * self.weight, x * self.weight)", "[torch.randn(30, 40, dtype=torch.complex64)]").failed == ()


def test_a_mean_over_very_many_elements_is_a_constant():
    assert "constant" in failed_names("(x + 20).mean()", "[torch.rand(1000, 1000)]")


def test_inputs_that_do_not_follow_the_seed_are_rejected():
    assert "inputs follow the seed" in failed_names("x * self.weight", "[torch.ones(30, 40)]")


def test_inputs_that_follow_no_seed_are_rejected():
    inputs = "[torch.rand(30, 40, generator=torch.Generator().manual_seed(torch.Generator().seed() % 2**31))]"
    (check, *_) = admit("x * self.weight", inputs).failed
    assert check.name == "inputs follow the seed" and check.evidence.startswith(
        "the same seed gives other inputs; draw"
    )


def test_a_reference_that_is_not_deterministic_is_rejected():
    forward = "x * torch.rand(40, generator=torch.Generator().manual_seed(torch.Generator().seed() % 2**31))"
    check = admit(forward).failed[0]
    assert check.name == "reference passes, twice"
    assert check.evidence.startswith("two runs differ: output: ")
    assert "SEEDED_CALLS = True" in check.evidence


@pytest.mark.parametrize(("declared", "admitted"), [(False, True), (True, False)])
def test_runs_that_differ_in_their_last_bits_contradict_only_a_declaration(declared, admitted):
    forward = "x * self.weight * (1 + 1e-7 * torch.rand(40, generator=torch.Generator().manual_seed(len(self.calls))))"
    source = SOURCE.replace("nn.Parameter(torch.randn(40))", "nn.Parameter(torch.randn(40)); self.calls = []")
    source = source.replace("return FORWARD", f"self.calls.append(1); return {forward}")
    source = source.replace("INPUTS", "[torch.randn(30, 40)]")
    problem = Problem(name="toy", suite="mine", source=source, deterministic=declared)
    admission = admit_problem(load_problem(problem, "full"), CPU, seed=7)
    assert admission.admitted is admitted, admission.failed
    if declared:
        assert "remove DETERMINISTIC = True" in admission.failed[0].evidence


def test_a_reference_that_changes_its_own_state_is_admitted():
    source = SOURCE.replace("nn.Parameter(torch.randn(40))", "nn.BatchNorm1d(40)")
    source = source.replace("FORWARD", "self.weight(x)").replace("INPUTS", "[torch.randn(30, 40)]")
    problem = Problem(name="toy", suite="mine", source=source, training=True)
    assert admit_problem(load_problem(problem, "full"), CPU, seed=7).failed == ()


def test_a_reference_that_draws_random_numbers_is_admitted_where_calls_are_seeded():
    source = SOURCE.replace("nn.Parameter(torch.randn(40))", "nn.Dropout(0.5)")
    source = source.replace("FORWARD", "self.weight(x)").replace("INPUTS", "[torch.randn(30, 40)]")
    problem = Problem(name="toy", suite="mine", source=source, training=True, seeded_calls=True)
    assert admit_problem(load_problem(problem, "full"), CPU, seed=7).failed == ()


def test_a_reference_that_changes_its_inputs_is_rejected():
    check = admit("x.clamp_(min=0.5) * self.weight").failed[0]
    assert check.name == "reference passes, twice"
    assert "changes its inputs" in check.evidence


def test_a_reference_with_nan_is_rejected():
    assert "finite" in failed_names("torch.log(x)")


def test_a_reference_that_is_not_finite_on_a_declared_distribution_is_rejected():
    assert failed_names("1 / x * self.weight", distributions=("as_given", "zeros")) == ["inputs: zeros"]


def test_outputs_without_any_element_are_rejected():
    assert "outputs have elements" in failed_names("(x[:0], x[:, :0])")


@pytest.mark.parametrize("forward", ["x[x > 0]", "(x * 1, x.sum().item())", "[x * 2] * int(x.sum().abs() + 1)"])
def test_outputs_whose_form_depends_on_values_are_rejected(forward):
    assert failed_names(forward) == ["stable shapes"]


@pytest.mark.parametrize("rows", ["torch.randint(20, 23, ())", "torch.randint(1, 9, (3,)).sum()"])
def test_seed_dependent_input_shapes_are_rejected(rows):
    (check,) = admit("x * self.weight", f"[torch.randn(int({rows}), 40)]").failed
    assert check.name == "stable shapes"
    assert check.evidence.startswith("the shapes of what get_inputs() returns change with the seed; make them alike")


def test_a_reference_that_raises_is_rejected_and_says_why():
    (check,) = admit("x @ x").failed
    assert check.name == "runs"
    assert re.match(r"mine/toy\.py, line \d+: forward raised RuntimeError", check.evidence)


def test_whole_numbers_in_and_out_need_no_coarser_format():
    source = SOURCE.replace("nn.Parameter(torch.randn(40))", "3").replace("FORWARD", "x * self.weight")
    problem = Problem(name="toy", suite="mine", source=source.replace("INPUTS", "[torch.randint(1, 9, (30, 40))]"))
    admission = admit_problem(load_problem(problem, "full"), CPU, seed=7)
    assert admission.admitted
    assert "no floating-point outputs" in next(
        check.evidence for check in admission.checks if check.name == "coarser format"
    )


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_floating_formats_are_admitted_and_tried_in_the_next_coarser_one(dtype):
    assert admit("x * self.weight.to(x.dtype)", f"[torch.randn(30, 40, dtype=torch.{dtype})]").admitted


def evidence_of(name, forward, inputs="[torch.randn(30, 40)]"):
    return next(check.evidence for check in admit(forward, inputs).failed if check.name == name)


@pytest.mark.parametrize(
    ("forward", "advice"),
    [
        ("x > -100", "it hardly varies"),
        ("x.bool() & (x == x)", "it hardly varies"),
        ("x.clone()", "it equals an input: draw"),
    ],
)
def test_an_output_that_an_input_passes_for_is_described_as_it_is(forward, advice):
    assert advice in evidence_of("identity", forward)


def test_an_output_that_equals_a_converted_input_is_said_to_be_converted():
    evidence = evidence_of("identity", "x != 0", "[torch.randint(0, 2, (30, 40))]")
    assert "it equals an input as bool" in evidence


@pytest.mark.parametrize(
    ("forward", "inputs", "advice"),
    [
        ("x * 2", "[torch.randint(0, 9, (30, 40)).float()]", "draw inputs that are not whole numbers"),
        ("(x > 0).float()", "[torch.randn(30, 40).abs() * torch.randint(-1, 2, (30, 40)) + 0.3]", "before they are"),
    ],
)
def test_outputs_that_a_coarser_format_holds_are_described_by_inputs_and_outputs(forward, inputs, advice):
    assert advice in evidence_of("coarser format", forward, inputs)
