"""Which inputs of their own problems get, by how they draw the given ones and by what the reference does with them."""

import itertools
import weakref

import pytest
import torch

from harness.domain import Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.problems.inputs.conformity import find_violation
from harness.problems.inputs.tensors import has_many_digits
from harness.problems.loading import load_problem
from harness.problems.operators import OperatorCalls
from harness.sandbox.devices import CpuDevice

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, *more):
        return {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def list_steps(forward, inputs, distributions=("as_given",)):
    return {kind.name for kind in prepare(forward, inputs, distributions).derived_kinds}


def prepare(forward, inputs, distributions=("as_given",)):
    source = SOURCE.format(forward=forward, inputs=inputs)
    problem = Problem(name="p", suite="s", source=source, distributions=distributions)
    return prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.rand(8, 9)", "torch.randn(8, 9)", "torch.randn((8, 9)) * 3", "torch.empty(8, 9).normal_()",
        "torch.randn(8, 9), torch.randint(0, 5, (8,))", "torch.randn(8, 9), torch.randint(3, (8,))",
        "*torch.rand(2, 8, 9)", "*torch.randn(8, 27).chunk(3, -1)", "torch.rand(8, 9).sqrt()",
        "torch.cat([torch.rand(4, 9), torch.rand(4, 9)])", "torch.sigmoid(torch.randn(8, 9))",
        "torch.rand(8, 9) * torch.rand(())",
    ],
)  # fmt: skip
def test_inputs_that_are_drawn_one_by_one_get_all_kinds(inputs):
    assert list_steps("torch.relu(x)", inputs) >= {"biased", "varied", "sparse"}


@pytest.mark.parametrize(
    ("inputs", "kinds"),
    [
        ("torch.rand(8, 8).tril()", {"biased", "scaled"}),
        ("torch.softmax(torch.randn(8, 9), 1)", {"biased", "scaled", "varied"}),
        ("torch.eye(8) * torch.tensor(0.3)", {"biased", "general"}),
    ],
)
def test_inputs_with_a_structure_keep_it(inputs, kinds):
    reference = prepare("torch.relu(x)", inputs)
    assert {kind.name for kind in reference.derived_kinds} == kinds
    (contract,) = reference.traits.contracts
    for kind, seed in itertools.product(kinds - {"biased"}, range(6)):
        assert not find_violation(reference.make_inputs(seed, kind)[0], contract)


@pytest.mark.parametrize(
    "second",
    [
        "torch.rand(8, 8).tril()", "torch.softmax(torch.rand(8, 8), 1)", "torch.eye(8)", "torch.arange(8.0)",
        "torch.rand(8, 8) @ torch.rand(8, 8)",
    ],
)  # fmt: skip
def test_beside_an_input_with_structure_the_others_get_all_kinds(second):
    reference = prepare("torch.relu(x) + more[0].sum()", f"torch.rand(8, 8), {second}")
    assert {kind.name for kind in reference.derived_kinds} >= {"biased", "varied"}
    assert [one.is_related for one in reference.traits.contracts] == [False, True]
    given, varied = (reference.make_inputs(5, kind) for kind in ("as_given", "varied"))
    assert not torch.equal(given[0], varied[0])
    assert torch.equal(given[1], varied[1])


@pytest.mark.parametrize(
    "inputs",
    [
        "*[torch.rand(8, 8)] * 2",
        "*(lambda x: (x, x.clone()))(torch.rand(8, 8))",
        "*(lambda x: (x[:, :5], 2 * x[:, 3:]))(torch.rand(8, 8))",
        "*(lambda x: (x, x.mT))(torch.rand(8, 8))",
        "torch.cat([torch.rand(1, 8)] * 2)",
    ],
)
def test_inputs_of_one_draw_stay_alike(inputs):
    assert "varied" not in list_steps("torch.relu(x).sum() + (more[0].sum() if more else 0)", inputs)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("torch.rand(30).sqrt()", "x may be real numbers from 0"),
        ("torch.randn(30).abs() * 2 + 1", "x may be real numbers from 1"),
        ("-torch.randn(30).exp()", "x may be real numbers up to 0"),
        ("torch.sigmoid(torch.randn(30))", "x may be real numbers from 0 to 1"),
        ("torch.randn(30).clamp_(-2, 2).bfloat16()", "x may be real numbers from -2 to 2"),
        (
            "torch.randn(6, 5).index_select(0, torch.arange(5)).abs()",
            "x may be what get_inputs makes of other random numbers",
        ),
        ("torch.rand(30) * 2 - 1", "x may be any real numbers"),
        ("(lambda x: (x[::2].exp_(), x)[1])(torch.randn(30))", "x may be any real numbers"),
    ],
)
def test_values_keep_the_range_of_functions_that_made_them(made, words):
    reference = prepare("torch.relu(x)", made)
    (contract,) = reference.traits.contracts
    assert str(contract) == words
    for kind, seed in itertools.product(reference.derived_kinds, range(6)):
        assert not find_violation(reference.make_inputs(seed, kind.name)[0], contract)


@pytest.mark.parametrize(
    ("forward", "is_moved"),
    [
        ("torch.softmax(x, 1)", True),
        ("torch.logsumexp(x, 1)", True),
        ("torch.logaddexp(x, x * 2)", True),
        ("x.amin(1)", True),
        ("x.min(1).values", True),
        ("x.amax(1)", True),
        ("x.max(1).values", True),
        ("nn.functional.max_pool1d(x, 3)", True),
        ("nn.functional.max_pool2d(x[None], 3)", True),
        ("nn.functional.max_pool3d(x[None, None, None], (1, 2, 2))", True),
        ("nn.functional.adaptive_max_pool2d(x[None], 2)", True),
        ("torch.softmax(x.double() * 2, 1)", True),
        ("torch.exp(x * 2 - (x * 2).amax(1, keepdim=True))", True),
        ("(x * 2).amax(1)", False),
        ("torch.exp(x) * (x * x).sum(1, keepdim=True)", False),
        ("x.sum(1)", False),
    ],
)
def test_inputs_are_moved_where_a_maximum_or_minimum_of_them_is_taken(forward, is_moved):
    assert ("shifted" in list_steps(forward, "torch.randn(8, 9)")) is is_moved


@pytest.mark.parametrize(
    ("forward", "is_biased"),
    [
        ("x.sum()", False),
        ("x.mean()", False),
        ("x.var(dim=(0, 1))", False),
        ("x / x.norm()", False),
        ("nn.functional.mse_loss(x, -x)", False),
        ("nn.functional.layer_norm(x, x.shape)", False),
        ("nn.functional.group_norm(x[None], 1)", False),
        ("nn.functional.batch_norm(x.view(-1, 1), None, None, training=True)", False),
        ("x.sum(1)", True),
        ("nn.functional.layer_norm(x, x.shape[1:])", True),
        ("nn.functional.batch_norm(x, None, None, training=True)", True),
        ("x.view(1, -1) @ x.view(-1, 1)", True),
        ("torch.relu(x).mean()", False),
        ("(x @ x.mT / 300).mean()", True),
    ],
)
def test_long_sums_are_not_tried_with_roundings_of_one_sign(forward, is_biased):
    assert ("biased" in list_steps(forward, "torch.rand(512, 300)")) is is_biased


@pytest.mark.parametrize(
    ("forward", "is_converted"),
    [
        ("x * (more[0] * 4).long()", [False, True]),
        ("x[(more[0].mean(1) * 8).to(torch.int32).clamp(0, 7)] + more[0]", [False, True]),
        ("x + torch.ones(3)[(x + more[0]).long().clamp(0, 2)]", [True, True]),
        ("x + more[0]", [False, False]),
    ],
)
def test_only_arguments_that_become_integers_keep_their_digits(forward, is_converted):
    reference = prepare(forward, "torch.rand(8, 9), torch.rand(8, 9)")
    assert [one.is_converted for one in reference.traits.contracts] == is_converted
    assert ("varied" in {kind.name for kind in reference.derived_kinds}) is not all(is_converted)
    for kind in reference.derived_kinds:
        given, changed = (reference.make_inputs(5, name) for name in ("as_given", kind.name))
        kept = [torch.equal(*pair) for pair in zip(given, changed, strict=True)]
        assert kind.name == "scaled" or all(one for one, is_kept in zip(kept, is_converted, strict=True) if is_kept)


@pytest.mark.parametrize("made", ["torch.randint(-8, 8, (40, 50)) / 8", "torch.randint(9, (40, 50)).float()"])
def test_values_of_few_digits_have_others_in_half_of_the_calls(made):
    reference = prepare("x.sum(1)", made)
    for name in ("varied", "biased", "scaled"):
        with_others = sum(has_many_digits(reference.make_inputs(seed, name)[0]) for seed in range(24))
        assert 3 <= with_others <= 21


def test_declared_small_values_exclude_no_larger_or_negative_ones():
    assert list_steps("torch.softmax(x, 1)", "torch.rand(8, 9)", ("as_given", "tiny")) >= {"varied", "shifted"}


def test_a_watch_keeps_no_inputs_whose_memory_the_next_ones_may_need():
    given = torch.rand(4)
    watch, alive = OperatorCalls([given]), weakref.ref(given)
    with watch:
        torch.relu(given)
    del given
    assert alive() is None and watch.use.has({"relu"}, on_input=True)
