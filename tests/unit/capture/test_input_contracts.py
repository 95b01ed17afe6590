"""`INPUTS` of captured problems: what was seen, generalised."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from harness.capture.capture import make_problem
from harness.capture.runtime import fill_outputs
from harness.capture.trial_calls import load_text
from harness.capture.values import describe, merge
from harness.capture.watch import CallForm
from harness.domain import ProblemError
from harness.problems.contracts import read_contracts
from harness.problems.inputs.conformity import find_violation

SQUARE = torch.ones(8, 8, dtype=torch.bool)
SIGNED = torch.tensor([-1.0, 0.5, 2.0, -0.3])
LENGTHS = torch.arange(8) < torch.tensor([[3], [8], [5]])
EMPTY_ROWS = torch.eye(8).bool() & (torch.arange(8) > 2)


class Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.weight, self.function = nn.Parameter(torch.randn(64, 8)), function

    def forward(self, x, more):
        return self.function(x, more, self.weight)


def write(function, *calls):
    forms = [CallForm({"x": describe(torch.randn(8, 8)), "more": describe(more)}, count=1) for more in calls]
    return make(Module(function), forms)


def make(module, forms):
    return make_problem(module, forms, summary="A module.", settings=[], device=torch.device("cpu"))


def mask(structure):
    return {"kind": "mask", "structure": structure}


def scale(x, more, weight):
    return x * more.float().sum() * weight[:8]


CONTRACTS = {
    "causal": (scale, SQUARE.tril(), mask("causal")),
    "inverted causal": (scale, SQUARE.triu(1), mask("causal")),
    "additive causal": (
        lambda x, more, weight: torch.softmax(x + more, 1) * weight[:8],
        torch.full((8, 8), -math.inf).triu(1), mask("causal"),
    ),
    "additive, lowest number": (
        lambda x, more, weight: torch.softmax(x + more, 1) * weight[:8],
        torch.zeros(8, 8).masked_fill(SQUARE.triu(1), torch.finfo().min), mask("causal"),
    ),
    "lengths": (scale, LENGTHS, mask("lengths")),
    "integers of a mask": (scale, LENGTHS.long(), mask("lengths")),
    "no padding": (scale, torch.ones(4, 8, dtype=torch.long), mask("lengths")),
    "nonempty": (scale, torch.eye(8) == 1, mask("nonempty")),
    "arbitrary": (scale, torch.eye(8)[:, :4] == 1, mask("arbitrary")),
    "index": (lambda x, more, weight: x + weight[more], torch.randint(3, 9, (8,)), {"kind": "index", "below": 64}),
    "index of an embedding": (
        lambda x, more, weight: x + nn.functional.embedding(more.view(8), weight), torch.randint(3, 9, (2, 4)),
        {"kind": "index", "below": 64},
    ),
    "index of gather": (
        lambda x, more, weight: x + weight.gather(1, more.expand(8, 8)), torch.tensor([[5]] * 8),
        {"kind": "index", "below": 8},
    ),
    "positions": (scale, torch.arange(8), {"kind": "integer", "low": 0, "high": 7}),
    "offsets": (scale, torch.tensor([0, 3, 3, 8]), {"kind": "sorted", "low": 0, "high": 8}),
    "negative integers": (scale, torch.tensor([[-3, 2]]), {"kind": "integer", "low": -3, "high": 2}),
    "logarithm": (lambda x, more, weight: x + more.log() * weight[0], torch.rand(8) + 0.5, {"kind": "real", "low": 0}),
    "positive by chance": (lambda x, more, weight: x + more.exp() * weight[0], torch.rand(8) + 0.5, "real"),
    "reals": (scale, torch.randn(8), "real"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRACTS)
def test_contracts_generalise_the_arguments_that_were_seen(name):
    function, more, contract = CONTRACTS[name]
    names = load_text(write(function, more).text)
    assert names["INPUTS"] == {"x": "real", "more": contract}
    require_right_draws(names)


def require_right_draws(names):
    contracts = read_contracts(names["INPUTS"], Path("file.py"))
    for seed in range(3):
        torch.manual_seed(seed)
        for value, contract in zip(names["get_inputs"](), contracts, strict=True):
            assert find_violation(value, contract) == ""


@pytest.mark.parametrize(
    ("others", "structure"),
    [
        ([SQUARE.tril()], "causal"),
        ([LENGTHS[:1].expand(8, 8)], "nonempty"),
        ([EMPTY_ROWS], "arbitrary"),
        ([LENGTHS[:1].expand(8, 8), EMPTY_ROWS], "arbitrary"),
    ],
)
def test_the_contract_of_a_mask_holds_for_all_calls(others, structure):
    facts = describe(SQUARE.tril())
    for other in others:
        facts = merge(facts, describe(other))
    assert facts.structure == structure


@pytest.mark.parametrize(
    ("one", "other", "pattern"),
    [
        (torch.zeros(4), SIGNED, "normal"),
        (torch.zeros(4), torch.rand(4), "uniform"),
        (torch.rand(4), SIGNED, "normal"),
        (torch.ones(4), torch.full((4,), 2.0), "uniform"),
        (torch.arange(4), torch.tensor([3, 1, 2, 2]), "integers"),
        (torch.full((2, 2), -math.inf).triu(1), torch.zeros(2, 2), "mask"),
        (torch.full((2, 2), -math.inf).triu(1), SIGNED.view(2, 2), "normal"),
        (torch.ones(2, 2, dtype=torch.long), torch.full((2, 2), 7), "integers"),
    ],
)
def test_values_of_several_calls_are_drawn_as_the_more_general_ones(one, other, pattern):
    assert merge(describe(one), describe(other)).pattern == pattern
    assert merge(describe(other), describe(one)).pattern == pattern


def test_calls_beyond_the_cases_are_named():
    calls = [torch.randn(8)] * 6
    forms = [
        CallForm({"x": describe(torch.randn(8 * n, 8)), "more": describe(one)}, n) for n, one in enumerate(calls, 1)
    ]
    module = Module(lambda x, more, weight: x * more + weight.sum())
    assert make(module, forms).left_out == []  # within the range of a single size
    facts = [(describe(torch.randn(n, 9 - n)), describe(torch.randn(n % 3 + 1))) for n in range(1, 7)]
    forms = [CallForm({"x": x, "more": more}, n) for n, (x, more) in enumerate(facts, 1)]
    assert make(Module(lambda x, more, weight: x.sum() + more), forms).left_out == []


def rows(n):
    return torch.randn(n, 8)


BOUNDED = {
    "index": (lambda x, more, weight: x[more] + weight[0], rows, lambda n: torch.tensor([n - 1, 0, 2]),
              {"kind": "index", "below": "batch"}),
    "packed sequences": (
        lambda x, more, weight: x * torch.repeat_interleave(more.diff(), output_size=x.shape[0])[:, None] * weight[0],
        rows, lambda n: torch.tensor([0, 2, 2, n]), {"kind": "sorted", "low": 0, "high": "batch"},
    ),
    "bags": (
        lambda x, more, weight: nn.functional.embedding_bag(x, weight, more), lambda n: torch.arange(n) // 2,
        lambda n: torch.tensor([0, 2, 2, 4]), {"kind": "sorted", "low": 0, "high": "length"},
    ),
    "bags of equal sizes": (
        lambda x, more, weight: nn.functional.embedding_bag(x, weight, more), lambda n: torch.arange(n) // 2,
        lambda n: torch.arange(3), {"kind": "sorted", "low": 0, "high": "length"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
def test_indices_and_offsets_are_bounded_by_sizes_that_vary(name):
    function, draw_x, draw_more, contract = BOUNDED[name]
    forms = [CallForm({"x": describe(draw_x(n)), "more": describe(draw_more(n))}, count=1) for n in (7, 5, 12)]
    text = make(Module(function), forms)
    names = load_text(text.text)
    assert names["INPUTS"]["more"] == contract
    assert "RANGES" in names
    for size in (5, 12):
        names.update(dict.fromkeys(text.sizes.ranges, size))
        x, more = names["get_inputs"]()
        assert 0 <= int(more.min()) <= int(more.max()) <= size
        names["Model"]()(x, more)


def test_many_sizes_that_do_not_depend_on_each_other_have_ranges():
    class Sums(nn.Module):
        def forward(self, *x):
            return sum(one.sin().sum() for one in x)

    draws = [[describe(torch.randn(3 + (at * (n + 1)) % 7)) for n in range(5)] for at in range(1, 6)]
    forms = [CallForm({f"x_{n}": one for n, one in enumerate(draw)}, positional=5) for draw in draws]
    assert len(make(Sums(), forms).sizes.ranges) == 5


def test_sizes_that_do_not_depend_on_each_other_have_ranges():
    shapes = [(3, 7), (8, 5), (5, 9), (6, 6)]
    forms = [CallForm({"x": describe(torch.randn(*one)), "more": describe(torch.randn(one[1]))}) for one in shapes]
    text = make(Module(lambda x, y, weight: x * y + weight.sum()), forms)
    assert 'RANGES = {"batch": (3, 8), "length": (5, 9)}' in text.text
    assert text.shapes == [[[(3, 8), (5, 9)], [(5, 9)]]]
    forms = [CallForm({"x": describe(torch.randn(n, 4)), "more": describe(torch.randn(2 * n))}) for n in (3, 4, 6)]
    text = make(Module(lambda x, y, weight: x.sum(-1) + y.view(-1, 2).sum(-1) + weight.sum()), forms)
    assert "RANGES" not in text.text
    assert len(text.shapes) == 3


def test_numbers_that_a_module_returns_are_no_outputs_of_its_problem():
    module = Module(lambda x, more, weight: (x * more, [x.shape[1], 0.5, True, None]))
    forms = [CallForm({"x": describe(torch.randn(n, 8)), "more": describe(torch.randn(8))}) for n in (2, 3, 4)]
    text = make(module, forms)
    assert (len(text.shapes), "return mul" in text.text) == (1, True)
    x = torch.randn(2, 8)
    assert fill_outputs(ast.literal_eval(text.outputs), x, {}) == (x, [8, 0.5, True, None])
    with pytest.raises(ProblemError, match="it returns str"):
        make(module, [replace(forms[0], output_kind="str")])


def test_a_number_that_depends_on_sizes_is_verified_for_one_size():
    module = Module(lambda x, more, weight: (x * more, x.shape[0]))
    forms = [CallForm({"x": describe(torch.randn(n, 8)), "more": describe(torch.randn(8))}, n) for n in (2, 3, 4)]
    assert make(module, forms).shapes == [[[(4, 4), (8, 8)], [(8, 8)]]]
