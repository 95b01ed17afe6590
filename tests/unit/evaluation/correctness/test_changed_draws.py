"""Inputs whose values depend on each other are made of changed draws."""

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.problems.inputs.draws import ChangedDraws, Draw
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

SOURCE = """
import torch
from torch import nn

TABLE = torch.randn(40)


class Model(nn.Module):
    def forward(self, x, *more):
        return {forward}


def get_inputs():
    x = torch.randn(40, 40)
    {inputs}


def get_init_inputs():
    return []
"""
SUMS = "x.to(torch.complex64).abs().sum() + sum(one.float().sum() for one in more)"
SEEDS = range(12)


def prepare(inputs, forward=SUMS, stated=()):
    source = SOURCE.format(inputs=inputs, forward=forward)
    problem = Problem(name="p", suite="s", source=source, distributions=("as_given",), inputs=stated)
    return prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)


def list_sizes(reference, kind):
    """Return how much larger the largest value of the first argument is than the given one."""
    pairs = ((reference.make_inputs(seed, kind)[0], reference.make_inputs(seed)[0]) for seed in SEEDS)
    return [float(made.abs().float().max() / given.abs().float().max()) for made, given in pairs]


def holds_for_all(reference, relation):
    kinds = [kind.name for kind in reference.derived_kinds if kind.name in ("varied", "scaled")]
    assert len(kinds) == 2
    return all(relation(*reference.make_inputs(seed, kind)) for kind in kinds for seed in SEEDS)


def is_near(one, other):
    return bool((one - other).abs().max() <= 1e-4 * other.abs().max())


@pytest.mark.parametrize(
    ("inputs", "relation"),
    [
        ("return [x - x.mean()]", lambda x: float(x.mean().abs()) < 1e-5 * float(x.abs().max())),
        ("return [x, x]", torch.equal),
        ("return [x, x.mT.clone()]", lambda x, y: torch.equal(x, y.mT)),
        ("return [x, x.topk(3).indices]", lambda x, places: torch.equal(x.topk(3).indices, places)),
        ("return [x, (x > 0.5).sum(1)]", lambda x, counts: torch.equal((x > 0.5).sum(1), counts)),
        ("return [x.sort().values]", lambda x: torch.equal(x, x.sort().values)),
        ("return [x.softmax(1)]", lambda x: is_near(x.sum(1), torch.ones(40)) and x.min() >= 0),
        ("return [x @ x.T + 40 * torch.eye(40)]", lambda x: not torch.linalg.cholesky_ex(x).info),
        ("return [torch.linalg.qr(x).Q]", lambda x: is_near(x @ x.T, torch.eye(40))),
        ("return [x.triu()]", lambda x: torch.equal(x, x.triu())),
        ("x[0] = 0.0; return [x]", lambda x: not x[0].any() and bool(x[1:].any())),
        ("return [x * (torch.rand(40, 40) > 0.5)]", lambda x: 0.3 < float((x == 0).float().mean()) < 0.7),
        ("return [x.to(torch.float8_e4m3fn)]", lambda x: bool(x.float().isfinite().all())),
        ("return [torch.view_as_complex(x.view(40, 20, 2)) * 2j]", lambda x: bool(x.abs().isfinite().all())),
    ],
)
def test_relations_hold_between_values_of_other_sizes(inputs, relation):
    reference = prepare(inputs)
    assert holds_for_all(reference, relation)
    made = [[reference.make_inputs(seed, kind)[0] for seed in SEEDS] for kind in ("varied", "as_given")]
    changed = [not torch.equal(*map(torch.view_as_real if one.is_complex() else torch.Tensor.float, (one, given)))
               for one, given in zip(*made, strict=True)]  # fmt: skip
    assert sum(changed) >= 9


@pytest.mark.parametrize("inputs", ["return [x - x.mean()]", "return [x, x]", "return [x.to(torch.float8_e4m3fn)]"])
def test_values_that_depend_on_each_other_are_far_larger_or_smaller(inputs):
    reference = prepare(inputs)
    assert max(list_sizes(reference, "varied")) > 3
    assert min(list_sizes(reference, "scaled")) < 0.01


def test_matrices_whose_changed_draws_would_not_be_positive_definite_stay():
    reference = prepare("return [(x + x.T) / 2 + 14 * torch.eye(40)]")
    assert reference.traits.contracts[0].kind == "positive_definite"
    assert holds_for_all(reference, lambda x: not torch.linalg.cholesky_ex(x).info)


@pytest.mark.parametrize(
    ("made", "low"),
    [
        ("torch.normal(0.0, 1.0, (40, 40))", None), ("torch.distributions.Normal(0.0, 1.0).sample((40, 40))", None),
        ("torch.empty(40, 40).cauchy_()", None), ("torch.empty(40, 40).exponential_()", 0),
        ("torch.empty(40, 40).log_normal_()", 0), ("torch.distributions.Exponential(2.0).sample((40, 40))", 0),
        ("torch.nn.init.normal_(torch.empty(40, 40))", None),
    ],
)  # fmt: skip
def test_further_draws_get_all_kinds_and_keep_their_sign(made, low):
    reference = prepare(f"return [{made}]")
    assert {kind.name for kind in reference.derived_kinds} >= {"biased", "varied", "scaled", "sparse"}
    (contract,) = reference.traits.contracts
    assert (contract.is_related, contract.low) == (False, low)
    found = [float(reference.make_inputs(seed, "varied")[0].min()) for seed in SEEDS]
    assert (min(found) >= 0) == (low == 0)


@pytest.mark.parametrize(
    "inputs",
    [
        "n = torch.randint(1, 5, (1,)).tolist()[0]; return [x, torch.rand(40) + n]",
        "assert x.max() > 0; return [x]",
        "_ = x[x > 0]; return [x]",
        "torch.save(TABLE, __import__('io').BytesIO()); return [x, TABLE]",
    ],
)
def test_values_that_are_read_or_kept_exclude_no_kind_of_others(inputs):
    reference = prepare(inputs)
    assert {kind.name for kind in reference.derived_kinds} >= {"biased", "varied", "scaled", "sparse"}
    assert not reference.traits.contracts[0].is_related


def test_kept_tensors_stay_while_copies_of_them_change():
    reference = prepare("return [x, TABLE, TABLE]")
    before = reference.loaded.module.TABLE.clone()
    made = [reference.make_inputs(seed, kind.name) for kind in reference.derived_kinds for seed in SEEDS]
    assert torch.equal(reference.loaded.module.TABLE, before)
    assert any(not torch.equal(one[1], before) for one in made)
    given = reference.make_inputs(3)
    assert given[1].data_ptr() == given[2].data_ptr() != before.data_ptr()


@pytest.mark.parametrize(
    ("inputs", "forward"),
    [
        ("return [x - x.mean(), (x * 4).long()]", SUMS),
        ("return [x - x.mean()]", "x * (x * 4).long()"),
        ("return [x.softmax(1)]", "nn.functional.binary_cross_entropy(x, x)"),
        ("return [x + 40 * torch.eye(40)]", "torch.linalg.solve(x, x)"),
        ("return [x.tril() + 40 * torch.eye(40)]", "torch.linalg.solve_triangular(x, x, upper=False)"),
    ],
)
def test_draws_of_integers_probabilities_and_systems_stay(inputs, forward):
    assert not prepare(inputs, forward).traits.redrawn


def test_draws_of_stated_values_stay():
    stated = (InputContract(kind="as_drawn", argument="x", is_stated=True),)
    source = "return [x - x.mean(), x.cumsum(1), torch.randn(9).cumsum(0)]"
    assert {one.shape for one in prepare(source).traits.redrawn} == {(40, 40), (9,)}
    assert {one.shape for one in prepare(source, stated=stated).traits.redrawn} == {(9,)}


def test_only_the_named_draws_of_a_run_change():
    named = [
        Draw(1, torch.Size([3]), InputContract(low=0.0, is_stated=True)),
        Draw(2, torch.Size([4]), InputContract()),
    ]
    found = []
    torch.manual_seed(0)
    expected = torch.randn(3), torch.rand(3), torch.randn(5)
    torch.manual_seed(0)
    with ChangedDraws(7, named, lambda values, contract, generator: found.append(contract) or values.fill_(9)):
        drawn = torch.randn(3), torch.rand(3), torch.randn(5)
    assert torch.equal(drawn[0], expected[0]) and bool((drawn[1] == 9).all()) and torch.equal(drawn[2], expected[2])
    assert [one.low for one in found] == [0.0]
