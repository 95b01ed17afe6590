"""What float32 arithmetic explains of an output's errors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.domain import Outcome, Tolerance
from harness.evaluation.correctness import refinement
from harness.evaluation.correctness.comparison import are_surely_close, compare_outputs
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.refinement import compare_refined, refine_truth
from harness.evaluation.correctness.truth import Truth, TruthLeaf
from harness.problems.discovery import parse_problem
from harness.problems.inputs.kind import GIVEN
from harness.problems.inputs.kinds import find_kind
from harness.problems.loading import load_problem
from harness.problems.operators import OperatorCalls, Terms
from harness.sandbox.devices import open_device
from harness.tensors.outputs import flatten_outputs

SIDE, LENGTH = 96, 512
PROBLEM = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [{given}]


def get_init_inputs():
    return []
"""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def draw(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(5))


def watch(function, *tensors: Tensor) -> Terms:
    with OperatorCalls() as calls:
        function(*tensors)
    return calls.use.terms


def truth_of(exact: Tensor, reference: Tensor) -> Truth:
    leaf = TruthLeaf(name="output", reference=reference, exact=exact)
    return Truth(kind="float64", tree={"t": 0}, leaves=(leaf,))


def truncate(x: Tensor, bits: int) -> Tensor:
    return (x.contiguous().view(torch.int32) >> bits << bits).view(torch.float32)


def to_tf32(x: Tensor) -> Tensor:
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def round_at_random(x: Tensor) -> Tensor:
    source = torch.Generator().manual_seed(7)
    bits = x.contiguous().view(torch.int32) + torch.randint(0, 1 << 13, x.shape, dtype=torch.int32, generator=source)
    return (bits >> 13 << 13).view(torch.float32)


def around_means(a: Tensor, b: Tensor) -> Tensor:
    rows, columns = a.mean(1, keepdim=True), b.mean(0, keepdim=True)
    return to_tf32(a - rows) @ to_tf32(b - columns) + rows * b.sum(0, keepdim=True)


def one_by_one(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for column, row in zip(a.unbind(1), b.unbind(0), strict=True):
        total = total + column[:, None] * row
    return total


def in_bfloat16_parts(a: Tensor, b: Tensor) -> Tensor:
    (high, low), (left, right) = ((x.bfloat16().float(), (x - x.bfloat16().float()).bfloat16().float()) for x in (a, b))
    return high @ left + (high @ right + low @ left)


@pytest.mark.parametrize(
    ("multiply", "expected"),
    [
        (one_by_one, None),
        (in_bfloat16_parts, None),
        (around_means, Outcome.WRONG_VALUE),
        (lambda a, b: round_at_random(a) @ round_at_random(b), Outcome.WRONG_VALUE),
        (lambda a, b: a @ b * (1 + 2e-5), Outcome.WRONG_VALUE),
    ],
    ids=["worst order", "three parts", "around means", "rounded at random", "all too large"],
)
def test_errors_of_a_whole_output_may_not_exceed_what_its_sums_explain(multiply, expected):
    a, b = draw(SIDE, LENGTH), draw(LENGTH + 1, SIDE)[1:]
    truth, found = truth_of(a.double() @ b.double(), a @ b), flatten_outputs(multiply(a, b))
    terms = watch(torch.mm, a, b)
    assert compare_outputs(truth, found, Tolerance(), "as_given")[0] is None, "an element is beyond its tolerance"
    outcome, trial = compare_outputs(truth, found, Tolerance(), "as_given", terms=terms)
    assert outcome == expected and (trial.whole_ratio > 1.0) == (expected is not None), trial
    if expected is not None:
        assert "errors of all" in trial.message
        assert not are_surely_close(flatten_outputs(a @ b), found, Tolerance(), terms=terms)


def test_one_element_of_an_elementwise_operator_may_be_off_by_little():
    x = draw(40, 100)
    terms, truth = watch(torch.exp, x), truth_of(x.double().exp(), x.exp())
    for error, expected in ((3e-6, None), (3e-5, Outcome.WRONG_VALUE)):
        found = x.exp()
        found[7, 7] *= 1 + error
        assert compare_outputs(truth, flatten_outputs(found), Tolerance(), "as_given", terms=terms)[0] == expected


def test_hardware_may_approximate_some_functions():
    x = draw(40, 100) * 4 - 2
    for function, expected in ((torch.tanh, None), (torch.sin, Outcome.WRONG_VALUE)):
        terms, truth = watch(function, x), truth_of(function(x.double()), function(x))
        found = flatten_outputs(function(x) + 5e-6 * (2 * draw(40, 100) - 1))
        assert compare_outputs(truth, found, Tolerance(), "as_given", terms=terms)[0] == expected


def test_a_stated_tolerance_applies_alone():
    x = draw(40, 100)
    terms, truth = watch(torch.exp, x), truth_of(x.double().exp(), x.exp())
    found = flatten_outputs(x.exp() * 1.001)
    assert compare_outputs(truth, found, Tolerance(rtol=0.01), "as_given", terms=terms)[0] is None


@pytest.mark.parametrize(
    ("function", "shapes", "added", "multiplied"),
    [
        (torch.mm, [(4, 30), (30, 5)], 30, 30),
        (torch.addmm, [(5,), (4, 30), (30, 5)], 30, 30),
        (torch.bmm, [(2, 4, 30), (2, 30, 5)], 30, 30),
        (torch.conv2d, [(1, 6, 9, 9), (8, 6, 3, 3)], 54, 54),
        (lambda x, w: torch.conv2d(x, w, groups=6), [(1, 6, 9, 9), (6, 1, 3, 3)], 9, 9),
        (torch.conv_transpose2d, [(1, 6, 9, 9), (6, 8, 3, 3)], 54, 54),
        (torch.exp, [(70, 80)], 1, 0),
        (lambda x: x.sum(1), [(70, 80)], 80, 0),
        (lambda x: x.softmax(1), [(70, 80)], 80, 0),
        (lambda x: x.t().relu().relu(), [(70, 80)], 2, 0),
        (lambda x: torch.cat([x, x]).contiguous().flip(0), [(70, 80)], 2, 0),
        (lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"), [(70, 80), (70, 80)], 1, 0),
        (lambda x: x.square().sum(-1), [(70, 80, 3)], 4, 0),
    ],
)
def test_the_terms_of_sums_are_counted(function, shapes, added, multiplied):
    terms = watch(function, *(draw(*shape) for shape in shapes))
    assert (terms.added, terms.multiplied) == (added, multiplied)


def test_functions_that_hardware_approximates_are_counted():
    assert watch(lambda x: F.hardtanh(x.tanh().sigmoid_()), draw(70, 80)).functions == 2


@pytest.mark.parametrize("function", [F.softplus, F.elu, torch.log1p])
def test_functions_lose_few_digits_beside_values_near_one(function):
    near, small = watch(function, 4 * draw(70, 80)), watch(function, draw(70, 80) / 1000 - 9 * (function is F.softplus))
    assert near.approximated < 0.05
    assert small.approximated == 1


def test_variances_of_values_far_from_zero_may_be_differences_of_squares():
    x = torch.randn(40, 256, generator=torch.Generator().manual_seed(5)) + 10
    found = flatten_outputs((x * x).mean(1) - x.mean(1) ** 2)
    truth = truth_of(x.double().var(1, correction=0), x.var(1, correction=0))
    terms = watch(lambda values: values.var(1, correction=0), x)
    assert compare_outputs(truth, found, Tolerance(), "as_given", terms=terms)[0] is None
    assert watch(lambda values: values.var(1), x - 10).added < 2 * 256


def make_reference(expression: str, given: str, settings: str = ""):
    source = PROBLEM.format(expression=expression, given=given) + settings
    problem = parse_problem(source, Path("p.py"), "suite")
    return prepare_reference(load_problem(problem, "full"), open_device("cpu"), 1, 2)


def test_whole_numbers_may_all_err_in_one_direction():
    usual, whole = (make_reference("x.sum(1)", given) for given in ("torch.rand(9, 40)", "torch.ones(9, 40) * 3"))
    assert (usual.terms.truncated, whole.terms.truncated) == (0, 40)


@pytest.mark.parametrize(
    ("expression", "share", "beyond"), [("x.sigmoid() ** 2", 0.001, 1.1), ("x.sigmoid().cumsum(1) ** 4", 0.05, 1.8)]
)
def test_without_sums_hardly_any_element_may_be_lost(expression, share, beyond):
    reference = make_reference(expression, "1.8 * torch.randn(90, 400)")
    inputs = reference.make_inputs(3)
    truth = reference.truth_of(inputs)
    exact = truth.leaves[0].exact
    few, more = (exact.flatten().kthvalue(int(exact.numel() * times * share)).values for times in (0.9, beyond))
    for limit, outcome in ((few, None), (more, Outcome.WRONG_VALUE)):
        found = torch.where(exact <= limit, 0.0, exact).float()
        assert reference.compare(truth, flatten_outputs(found), "as_given")[0] == outcome


def test_a_sigmoid_by_a_tanh_may_lose_the_tail():
    reference, kind = make_reference("torch.nn.functional.silu(x)", "torch.randn(90, 400)"), find_kind("varied")
    (x,) = reference.make_inputs(3)
    x[:, ::50] = -18.0
    found = flatten_outputs(x * (0.5 + 0.5 * torch.tanh(0.5 * x)))
    assert reference.compare(reference.truth_of([x]), found, kind.name, kind)[0] is None
    x[:, ::50] = -15.5
    truth, exact = reference.truth_of([x]), reference.model(x)
    wrong = flatten_outputs(torch.where(exact.abs() < 1e-5, 0.0, exact))
    assert reference.compare(truth, wrong, kind.name, kind)[0] is Outcome.WRONG_VALUE


def test_a_tanh_by_a_sigmoid_may_lose_values_below_its_rounding():
    """Products of gates that are nearly closed, in a cell with large inputs."""
    reference = make_reference("torch.tanh(x.sigmoid() * x.flip(0).sigmoid())", "16.0 * torch.randn(90, 400)")
    inputs, kind = reference.make_inputs(3), find_kind("large")
    truth, small = reference.truth_of(inputs), inputs[0].sigmoid() * inputs[0].flip(0).sigmoid()
    found, exact = 2 * torch.sigmoid(2 * small) - 1, truth.leaves[0].exact
    assert int((found == 0).sum()) > 2000
    assert reference.compare(truth, flatten_outputs(found), kind.name, kind)[0] is None
    wrong = flatten_outputs(torch.where(exact < 1e-5, 0.0, exact).float())
    assert reference.compare(truth, wrong, kind.name, kind)[0] is Outcome.WRONG_VALUE


@pytest.mark.parametrize(("loud", "step"), [(1e3, 64), (1e5, 512), (1e5, 1024)])
def test_few_loud_columns_do_not_hide_errors_of_the_others(loud, step):
    generator = torch.Generator().manual_seed(7)
    exact = torch.randn(64, 4096, generator=generator, dtype=torch.float64)
    exact[:, ::step] = loud * (2 + exact[:, ::step].sin())
    own = exact.float()
    right = own * (1 + 1e-6 * torch.randn(own.shape, generator=generator))
    wrong = torch.where(torch.arange(4096) % step == 0, own, to_tf32(own))
    for found, outcome in ((right, None), (wrong, Outcome.WRONG_VALUE)):
        outputs = flatten_outputs(found)
        assert compare_outputs(truth_of(exact, own), outputs, Tolerance(), "")[0] is outcome
        assert are_surely_close(flatten_outputs(own), outputs, Tolerance()) == (outcome is None)


def test_conditioning_is_allowed_for():
    reference = make_reference("3.0 * (x - x.mean(1, keepdim=True))", "torch.rand(64, 256) + 30.0")
    inputs = reference.make_inputs(3)
    truth, x = reference.truth_of(inputs), inputs[0]
    found = flatten_outputs(3.0 * (x - one_by_one(x, torch.ones(256, 1)) / 256))
    assert reference.compare(truth, found, "as_given")[0] is Outcome.WRONG_VALUE
    assert reference.compare([*refine_truth(reference, truth, inputs)][-1], found, "as_given")[0] is None
    wrong = flatten_outputs(3.0 * (to_tf32(x) - to_tf32(x).mean(1, keepdim=True)))
    assert reference.compare([*refine_truth(reference, truth, inputs)][-1], wrong, "as_given")[0] is Outcome.WRONG_VALUE


def test_refinements_of_a_truth_are_computed_once(monkeypatch):
    reference = make_reference("3.0 * (x - x.mean(1, keepdim=True))", "torch.rand(64, 256) + 30.0")
    inputs = reference.make_inputs(3)
    truth = reference.truth_of(inputs)
    refinements = refine_truth(reference, truth, inputs)
    first = next(refinements)
    assert next(refine_truth(reference, truth, inputs)) is first
    *_, last = refinements
    assert last is not first
    monkeypatch.setattr(refinement, "compute_truth", None)
    monkeypatch.setattr(refinement, "run_with_state", None)
    assert [*refine_truth(reference, truth, inputs)] == [last]
    assert replace(truth).refined.truth is None


SETTLING = """
def settle(x):
    now = x
    while True:
        new = torch.maximum(now, now.roll(1)) * 1.0
        if torch.equal(new, now):
            return now - x
        now = new
"""


def test_a_loop_until_values_stay_the_same_ends_with_rounded_results(monkeypatch):
    """Each rounding makes the largest value larger."""
    monkeypatch.setattr(refinement, "WITHIN_S", 0.1)
    reference = make_reference("settle(x)", "torch.randn(64)", SETTLING)
    inputs = reference.make_inputs(3)
    truth = reference.truth_of(inputs)
    assert torch.equal(truth.leaves[0].reference, inputs[0].max() - inputs[0])
    *_, last = refine_truth(reference, truth, inputs, kind=find_kind("varied"))
    assert truth.refined.count == 3 and last.leaves[0].spread is not None


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_results_beyond_float16_are_not_compared_where_inputs_have_16_bits(dtype):
    expression = "(lambda e: (e / (e + 1.0)).to(x.dtype))(torch.exp(2.0 * x.float()))"
    reference = make_reference(expression, f"torch.randn(64, 256, dtype=torch.{dtype})")
    (x,), kind = reference.make_inputs(3), find_kind("varied")
    for factor, is_compared in ((1.0, True), (8.0, dtype == "float32")):
        inputs = [x * factor]
        *_, truth = refine_truth(reference, reference.truth_of(inputs), inputs, kind=kind)
        wrong = flatten_outputs(torch.full_like(x, torch.nan))
        assert (reference.compare(truth, wrong, kind.name, kind)[0] is Outcome.WRONG_VALUE) is is_compared
    *_, given = refine_truth(reference, reference.truth_of([x * 8.0]), [x * 8.0])
    assert reference.compare(given, wrong, "as_given")[0] is Outcome.WRONG_VALUE


def test_inputs_of_usual_sizes_have_the_tolerance_of_given_ones():
    reference = make_reference("x * 3.0", "torch.randn(64, 256)")
    inputs, biased = reference.make_inputs(3), find_kind("biased")
    truth = reference.truth_of(inputs)
    found = flatten_outputs((truth.leaves[0].exact * (1 + 5e-6)).float())
    for kind in (GIVEN, find_kind("varied"), *(biased.take_variant(seed) for seed in range(30)), find_kind("shifted")):
        expected = Outcome.WRONG_VALUE if kind not in (biased, find_kind("shifted")) else None
        assert reference.compare(truth, found, kind.name, kind)[0] is expected


@pytest.mark.parametrize("returned", ["", ".to(torch.int8)"])
def test_a_whole_number_may_be_the_next_one_where_a_rounding_decides(returned):
    reference = make_reference(
        f"(x / (x.abs().amax(1, keepdim=True) / 127)).round(){returned}", "torch.randn(512, 256)"
    )
    for seed in range(20):
        inputs = reference.make_inputs(seed)
        own = reference.model(*inputs)
        found = (inputs[0] * (127 / inputs[0].abs().amax(1, keepdim=True))).round().to(own.dtype)
        if not torch.equal(found, own):
            break
    truth, wrong = reference.truth_of(inputs), found.clone()
    refine = partial(refine_truth, reference, inputs=inputs)
    assert compare_refined(reference, truth, flatten_outputs(found), "", kind=GIVEN, refine=refine)[0] is None
    wrong[300, 100] += 1
    outcome = compare_refined(reference, truth, flatten_outputs(wrong), "", kind=GIVEN, refine=refine)[0]
    assert outcome is Outcome.WRONG_VALUE


def add_in_order(rows: Tensor) -> Tensor:
    total = torch.zeros(len(rows))
    for column in rows.T.contiguous():
        total += column
    return total


@pytest.mark.parametrize(
    ("expression", "rows"),
    [("F.group_norm(torch.sigmoid(x + 1), 2)", 8), ("F.layer_norm(torch.sigmoid(x + 1), x.shape[1:])", 4)],
)
def test_variances_far_from_zero_may_be_differences_of_squares(expression, rows):
    reference = make_reference(expression, "torch.randn(4, 8, 2000) / 4")
    (x,) = reference.make_inputs(3)
    values, truth = torch.sigmoid(x + 1).reshape(rows, -1), reference.truth_of([x])
    refine = partial(refine_truth, reference, inputs=[x])
    mean, square = (add_in_order(one) / values.shape[1] for one in (values, values * values))
    deviation = (square - mean * mean + 1e-5).sqrt()
    for wrong_by, expected in ((1.0, None), (1.02, Outcome.WRONG_VALUE)):
        found = ((values - mean[:, None]) / (deviation[:, None] * wrong_by)).reshape(x.shape)
        assert reference.compare(truth, flatten_outputs(found), "")[0] is Outcome.WRONG_VALUE
        assert compare_refined(reference, truth, flatten_outputs(found), "", kind=GIVEN, refine=refine)[0] is expected


def test_values_that_are_equal_by_chance_have_any_order():
    reference = make_reference("torch.topk(x, 20, dim=1)[1]", "torch.randn(32, 500)")
    (x,) = reference.make_inputs(3)
    largest = x[7].topk(20).indices
    x[7, largest[5]] = x[7, largest[6]]
    truth, found = reference.truth_of([x]), reference.model(x)
    refine = partial(refine_truth, reference, inputs=[x])

    def compare(places):
        return compare_refined(reference, truth, flatten_outputs(places), "", kind=GIVEN, refine=refine)[0]

    found[7, 5:7] = found[7, 5:7].flip(0)
    assert compare(found) is None
    for row, first in ((7, 9), (8, 5)):
        wrong = found.clone()
        wrong[row, first : first + 2] = wrong[row, first : first + 2].flip(0)
        assert compare(wrong) is Outcome.WRONG_VALUE


@pytest.mark.parametrize("name", ["sparse", "rare", "scaled", "contrasted"])
def test_sums_of_nearly_equal_terms_may_lose_digits(name):
    """Terms that are added one after another, as by atomics."""
    kind = find_kind(name)
    reference = make_reference("x.logsumexp(-1).mean()", "torch.randn(65536, 32)")
    x = torch.zeros(65536, 32)
    x[::4096] = draw(16, 32)
    truth, terms = reference.truth_of([x]), x.logsumexp(-1) / len(x)
    found = torch.from_numpy(numpy.add.accumulate(terms.numpy()))[-1]
    assert float(found) != pytest.approx(float(truth.leaves[0].exact), rel=3e-4)
    assert reference.compare(truth, flatten_outputs(found), kind.name, kind)[0] is None
    wrong = flatten_outputs(found * 1.004)
    assert reference.compare(truth, wrong, kind.name, kind)[0] is Outcome.WRONG_VALUE


def test_a_reference_without_operators_leaves_a_few_roundings():
    x = draw(40, 100)
    terms = watch(lambda values: values.t(), x)
    assert compare_outputs(truth_of(x.double(), x), flatten_outputs(x), Tolerance(), "as_given", terms=terms)[0] is None


@pytest.mark.parametrize(
    ("form", "expected"),
    [(to_tf32, None), (lambda x: truncate(x, 13), None), (lambda x: x.bfloat16().float(), Outcome.WRONG_VALUE)],
    ids=["rounded", "truncated", "bfloat16"],
)
@pytest.mark.parametrize("source", ["rand", "randn"])
def test_where_tf32_is_allowed_its_factors_may_be_truncated(source, form, expected):
    reference = make_reference("x @ x.t()", f"torch.{source}(96, 1024)", "ALLOW_TF32 = True")
    inputs = reference.make_inputs(3)
    found = flatten_outputs(form(inputs[0]) @ form(inputs[0]).t())
    assert reference.compare(reference.truth_of(inputs), found, "as_given")[0] == expected
