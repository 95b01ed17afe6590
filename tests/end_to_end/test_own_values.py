"""Problems that declare no distributions: cheaper programs within the tolerance on the given inputs alone, and honest
programs with other roundings."""

import pytest
import torch

HEAD = """
import torch
from torch import nn
"""

PROBLEM = (
    HEAD
    + """
KEPT = torch.rand(30, 40)

class Model(nn.Module):
    def forward(self, *inputs):
        return EXPRESSION

def get_inputs():
    return [INPUTS]

def get_init_inputs():
    return []
"""
)

CANDIDATE = (
    HEAD
    + """
class ModelNew(nn.Module):
    def forward(self, *inputs):
        BODY
"""
)

PRODUCT = ("inputs[0] @ inputs[1]", "torch.rand(33, 16384), torch.rand(16384, 17)")
MEAN = ("inputs[0].mean()", "torch.rand(1024, 1024).bfloat16()")
NORM = ("torch.nn.functional.layer_norm(inputs[0], inputs[0].shape[-1:])", "torch.rand(300, 512)")
UNIT = ("inputs[0] / inputs[0].norm(dim=1, keepdim=True)", "torch.randn(300, 512)")
TRIANGULAR = ("inputs[0] @ inputs[1]", "torch.tril(torch.rand(200, 200)), torch.rand(200, 8)")
LOSS = ("((inputs[0] - inputs[1]) ** 2).mean()", "torch.rand(700, 701), torch.rand(700, 701)")


@pytest.fixture
def evaluate(bench):
    from harness.domain import Problem

    def evaluate(task, body, seed=1, **settings):
        expression, inputs = task
        source = PROBLEM.replace("EXPRESSION", expression).replace("INPUTS", inputs)
        problem = Problem(name="one", suite="own", source=source, **settings)
        return bench.evaluate(CANDIDATE.replace("BODY", body), problem, attribute_work=False, seed=seed)

    return evaluate


CHEAPER = {
    "half_precision": (PRODUCT, "return inputs[0].half().float() @ inputs[1].half().float()"),
    "half_precision_of_one_factor": (PRODUCT, "return inputs[0].half().float() @ inputs[1]"),
    "first_half": (MEAN, "return inputs[0][:512].mean()"),
    "every_other_element": (MEAN, "return inputs[0].view(-1)[::2].mean()"),
}


@pytest.mark.parametrize("name", CHEAPER)
@pytest.mark.quick(1)
def test_a_cheaper_program_is_refused_where_the_given_inputs_hide_it(name, evaluate):
    task, body = CHEAPER[name]
    assert evaluate(task, body, only_as_given=True).outcome == "correct"
    found = [evaluate(task, body, seed) for seed in (1, 2)]  # each finds it in 11 of 12 draws
    assert "wrong_value" in [evaluation.outcome for evaluation in found]
    assert any("inputs)" in evaluation.message for evaluation in found)


HONEST = {
    "product_in_blocks": (
        PRODUCT,
        "return sum(a @ b for a, b in zip(inputs[0].split(100, 1), inputs[1].split(100, 0), strict=True))",
    ),
    "product_of_three_bfloat16_parts": (
        PRODUCT,
        """
        def split(x):
            high = x.bfloat16().float()
            middle = (x - high).bfloat16().float()
            return high, middle, x - high - middle
        (a, b, c), (d, e, f) = map(split, inputs[:2])
        return a @ d + (a @ e + b @ d) + (b @ e + a @ f + c @ d)""",
    ),
    "mean_of_row_sums": (MEAN, "return (inputs[0].float().sum(1).sum() / inputs[0].numel()).bfloat16()"),
    "variance_in_one_pass": (
        NORM,
        """
        mean = inputs[0].mean(-1, keepdim=True)
        variance = (inputs[0] ** 2).mean(-1, keepdim=True) - mean**2
        return (inputs[0] - mean) * torch.rsqrt(variance.clamp_min(0) + 1e-5)""",
    ),
    "lower_triangle_alone": (TRIANGULAR, "return inputs[0].tril() @ inputs[1]"),
    "guarded_norm": (UNIT, "return inputs[0] / ((inputs[0] ** 2).sum(1, keepdim=True).sqrt() + 1e-10)"),
    "loss_in_sequence": (LOSS, "return torch.cumsum((inputs[0] - inputs[1]).flatten() ** 2, 0)[-1] / 490700"),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.quick(1)
def test_an_honest_program_with_other_roundings_is_accepted(name, evaluate):
    evaluation = evaluate(*HONEST[name])
    assert evaluation.outcome == "correct", evaluation.message


def prepare(expression, inputs, **settings):
    from harness.domain import Problem
    from harness.evaluation.correctness.reference import prepare_reference
    from harness.problems.loading import load_problem
    from harness.sandbox.devices import CpuDevice

    source = PROBLEM.replace("EXPRESSION", expression).replace("INPUTS", inputs)
    problem = Problem(name="one", suite="own", source=source, **settings)
    return prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)


def list_steps(expression, inputs, **settings):
    return tuple(kind.name for kind in prepare(expression, inputs, **settings).derived_kinds)


def test_derived_kinds_are_those_on_which_honest_programs_agree():
    assert list_steps(*PRODUCT) == ("arranged", "biased", "varied", "scaled", "sparse")
    assert list_steps("inputs[0].argmax(1)", "torch.rand(30, 40)") == ("ordered", "scaled")
    assert list_steps("inputs[0].sort().values", "torch.rand(30, 40)") == ("ordered", "scaled")
    assert list_steps("inputs[0] + 1", "torch.randint(9, (30, 40))") == ("rare",)
    dropout = list_steps("nn.functional.dropout(inputs[0])", "torch.rand(30, 40)", seeded_calls=True)
    assert dropout[:2] == ("arranged", "biased")
    assert list_steps(*PRODUCT, only_as_given=True) == ()


STRUCTURED = {
    "triangular": "torch.rand(40, 40).tril()",
    "symmetric": "(lambda a: a + a.T)(torch.rand(40, 40))",
    "normalised": "torch.rand(40, 40).softmax(1)",
    "sorted": "torch.rand(40, 40).sort().values",
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_inputs_with_structure_keep_it(name):
    assert list_steps("inputs[0] @ inputs[0]", STRUCTURED[name]) == ("biased", "scaled")  # scaled: draws


@pytest.mark.parametrize("inputs", ["torch.linspace(0, 1, 1600).view(40, 40)", "torch.tensor([[1.3] * 40] * 40)"])
def test_inputs_without_chance_get_other_values(inputs):
    assert list_steps("inputs[0] @ inputs[0]", inputs) == ("biased", "general")


def test_scaled_random_inputs_have_no_structure():
    steps = list_steps("inputs[0] + 1", "2 * torch.rand(40, 40).float() - 1")
    assert steps == ("arranged", "biased", "varied", "scaled", "contrasted", "sparse")


def test_inputs_that_the_problem_keeps_are_not_changed_in_place():
    reference = prepare("inputs[0] + inputs[1]", "torch.rand(30, 40), KEPT")
    kept = reference.make_inputs(1)[1].clone()
    changed = [reference.make_inputs(seed, kind.name)[1] for kind in reference.derived_kinds for seed in range(6)]
    assert any(not torch.equal(one, kept) for one in changed)
    assert torch.equal(reference.make_inputs(2)[1], kept)


SCALED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)
        self.scale = nn.Parameter(torch.full((64,), 1e-6))

    def forward(self, x):
        return x + self.scale * self.inner(x)

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""
)


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("x + self.scale * self.inner(x)", "torch.addcmul(x, self.inner(x), self.scale)", "correct"),
        ("x + self.scale * self.inner(x)", "x.clone()", "wrong_value"),
        ("scale", "gain", "correct"),
    ],
)
@pytest.mark.quick(1)
def test_a_branch_with_a_negligible_weight_must_be_computed(old, new, outcome, bench):
    from harness.domain import Problem

    candidate = SCALED.replace("class Model(", "class ModelNew(").replace(old, new)
    problem = Problem(name="one", suite="own", source=SCALED)
    assert bench.evaluate(candidate, problem, attribute_work=False).outcome == outcome


def test_inputs_for_which_outputs_have_another_shape_are_not_tried(evaluate):
    body = "inputs[0][inputs[0] > -50.0]"
    evaluation = evaluate((body, "torch.randn(30, 40)"), f"return {body}")
    assert evaluation.outcome == "correct", evaluation.message


@pytest.mark.parametrize(("task", "is_warned"), [(PRODUCT, True), (MEAN, False)])
@pytest.mark.quick(1)
def test_a_program_that_names_narrower_formats_than_its_problem_gets_a_warning(task, is_warned, evaluate):
    body = HONEST["product_of_three_bfloat16_parts" if is_warned else "mean_of_row_sums"][1]
    findings = [finding.check for finding in evaluate(task, body).findings]
    assert ("narrow_format" in findings) == is_warned
