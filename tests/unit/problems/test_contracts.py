"""What problems state of their inputs (`INPUTS`)."""

import json

import pytest
import torch

from harness.cli.main import run_command
from harness.cli.problem_check import describe_contracts
from harness.domain import InputContract, Problem, ProblemError
from harness.problems.contracts import read_contracts
from harness.problems.discovery import read_problem
from harness.problems.inputs.conformity import find_violation
from harness.problems.inputs.kinds import DERIVED
from harness.problems.inputs.traits import InputTraits
from harness.problems.loading import load_problem
from harness.problems.operators import OperatorCall, OperatorUse

SOURCE = """
import torch
from torch import nn

rows, classes = 8, 40

class Model(nn.Module):
    def forward(self, x, targets, scale=1.0):
        return nn.functional.cross_entropy(x * scale, targets, reduction="none")

def get_inputs():
    return [torch.randn(rows, classes), torch.randint(classes, (rows,)), 0.5]

def get_init_inputs():
    return []

SMALL = {"rows": 5, "classes": 30}
"""


def write(tmp_path, stated):
    path = tmp_path / "losses.py"
    path.write_text(f"{SOURCE}\nINPUTS = {stated!r}\n")
    return path


def load(tmp_path, stated):
    return load_problem(read_problem(write(tmp_path, stated), "mine"), "small")


def test_bounds_follow_the_sizes_of_the_workload(tmp_path):
    loaded = load(tmp_path, {"targets": {"kind": "index", "below": "classes - 3", "also": -100}, "x": "real"})
    words = [one.describe() for one in loaded.list_contracts(loaded.make_inputs(0, torch.device("cpu")))]
    assert words == ["any real numbers", "indices from 0 to 26, or -100", "any real numbers"]


@pytest.mark.parametrize(("is_stated", "bounds"), [(False, "up to 2000"), (True, "from 2000 to 2000")])
def test_equal_integers_of_a_draw_may_be_smaller(is_stated, bounds):
    """They may be lengths, which are called with smaller values."""
    contract = InputContract(kind="integer", argument="lengths", low=2000, high=2000, is_stated=is_stated)
    assert str(contract) == f"lengths may be integers {bounds}"


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (["x"], "INPUTS must be a dict"),
        ({1: "real"}, "INPUTS must be a dict"),
        ({"x": "reel"}, "unknown kind 'reel'; did you mean real"),
        ({"x": 3}, "must be a kind, or a dict with a kind"),
        ({"x": {"low": 3}}, "must be a kind, or a dict with a kind"),
        (
            {"x": {"kind": "real", "below": 3}},
            "did you mean low. choose among low, high, distinct",
        ),
        ({"x": {"kind": "mask", "structure": "causual"}}, "did you mean causal"),
        ({"x": {"kind": "index"}}, "needs 'below'"),
        ({"x": {"kind": "real", "low": 3, "high": 2}}, "no value lies between"),
        ({"x": {"kind": "integer", "low": 0.5}}, "a bound must be an integer"),
        ({"x": {"kind": "real", "low": True}}, "a bound must be a number"),
        ({"x": {"kind": "real", "low": "rows +"}}, "no expression of the file's sizes"),
        ({"x": {"kind": "sorted", "dim": "rows"}}, "dim must be an integer or 'all'"),
        ({"x": {"kind": "index", "below": 3, "also": "x"}}, "also must be an integer"),
        ({"x": {"kind": "real", "distinct": 1}}, "distinct must be True or False"),
    ],
)
def test_a_wrong_statement_is_refused_where_it_is_read(tmp_path, stated, message):
    with pytest.raises(ProblemError, match=message) as raised:
        read_problem(write(tmp_path, stated), "mine")
    assert "losses.py" in str(raised.value)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"y": "real"}, "argument of forward 'y'; choose among x, targets, scale"),
        ({"x": {"kind": "real", "low": "row"}}, "'row' raised NameError"),
        ({"x": {"kind": "real", "low": "'a'"}}, "not a number"),
        ({"targets": {"kind": "integer", "low": 20, "high": "rows"}}, "no value lies between low = 20 and high = 5"),
    ],
)
def test_a_statement_that_does_not_fit_the_file_is_refused(tmp_path, stated, message):
    with pytest.raises(ProblemError, match=message):
        load(tmp_path, stated)


@pytest.mark.parametrize(
    ("contract", "value", "violation"),
    [
        ({"kind": "real", "low": 0, "high": 1}, torch.tensor([0.5, 1.5]), "1.5 is beyond its range"),
        ({"kind": "real", "low": 0}, torch.tensor([float("nan")]), "nan is beyond its range"),
        ({"kind": "real", "distinct": True}, torch.tensor([1.0, 2.0, 1.0]), "two values of a row are equal"),
        ({"kind": "integer", "low": 0}, torch.tensor([0.5]), "a value is no integer"),
        ({"kind": "integer", "low": 3, "high": 4}, 5, "5 is beyond its range"),
        ({"kind": "index", "low": 0, "high": 9, "also": (-1,)}, torch.tensor([3, -2]), "-2 is beyond its range"),
        ({"kind": "mask"}, torch.arange(3), "a mask has at most two values"),
        ({"kind": "mask", "structure": "nonempty"}, torch.eye(3, 4)[:, 1:] > 0, "a row has no element"),
        ({"kind": "mask", "structure": "causal"}, torch.ones(3, 3).triu(), "it is not causal"),
        ({"kind": "mask", "structure": "lengths"}, torch.ones(3, 3).triu(), "an element is not first"),
        ({"kind": "one_hot"}, torch.tensor([[0, 1], [1, 1]]), "a vector has not exactly one 1"),
        ({"kind": "permutation"}, torch.tensor([0, 2, 2]), "a number from 0 is missing"),
        ({"kind": "probabilities"}, torch.tensor([0.5, 0.6]), "a sum differs from 1 by 0.1"),
        ({"kind": "probabilities"}, torch.tensor([1.5, -0.5]), "a value is negative"),
        ({"kind": "probabilities", "dim": 2}, torch.tensor([1.0]), "it has no dimension 2"),
        ({"kind": "sorted"}, torch.tensor([1, 0]), "a value is less than the one before it"),
        ({"kind": "counts", "low": 1}, torch.tensor([1, 0]), "0 is beyond its range"),
        ({"kind": "symmetric"}, torch.tensor([[1, 2], [3, 4]]), "a matrix differs from its transpose"),
        ({"kind": "symmetric"}, torch.ones(2, 3), "are not square"),
        ({"kind": "positive_definite"}, -torch.eye(3), "a matrix is not positive definite"),
        ({"kind": "triangular", "structure": "upper"}, torch.ones(2, 2), "an element beyond the upper part is not 0"),
        ({"kind": "mask"}, 3, "a int is no tensor"),
        ({"kind": "real"}, "text", "state as_drawn"),
    ],
)
def test_a_value_that_violates_its_contract_is_named(contract, value, violation):
    assert violation in find_violation(value, InputContract(**contract))


def draw_symmetric(size=9):
    half = torch.randn(size, size)
    return half + half.T


DRAWS = [
    ({"kind": "real", "low": 0, "high": 1}, lambda: torch.rand(40, 50)),
    ({"kind": "real", "low": -1}, lambda: torch.rand(40, 50)),
    ({"kind": "real", "low": 0.2}, lambda: 0.2 + torch.rand(40, 50).bfloat16()),
    ({"kind": "real", "distinct": True}, lambda: torch.rand(9, 99).argsort(-1) + 0.5 * torch.rand(9, 99)),
    ({"kind": "integer", "low": 1, "high": 9}, lambda: torch.randint(1, 10, (30,))),
    ({"kind": "index", "low": 0, "high": 9, "also": (-100,)}, lambda: torch.randint(0, 10, (30, 4))),
    ({"kind": "integer", "low": 0}, lambda: torch.randint(0, 10, (30, 4)).float()),
    ({"kind": "mask"}, lambda: torch.rand(9, 9) < 0.5),
    ({"kind": "mask"}, lambda: torch.zeros(9, 9)),
    ({"kind": "mask", "structure": "nonempty"}, lambda: (torch.rand(9, 9) < 0.5) | (torch.eye(9) > 0)),
    ({"kind": "mask", "structure": "causal"}, lambda: torch.ones(9, 9).tril()),
    ({"kind": "mask", "structure": "lengths"}, lambda: torch.arange(9) < torch.randint(1, 10, (5, 1))),
    ({"kind": "mask", "structure": "lengths"}, lambda: -1e9 * (torch.arange(9) >= torch.randint(1, 10, (5, 1)))),
    ({"kind": "one_hot"}, lambda: torch.eye(9)[torch.randint(9, (20,))]),
    ({"kind": "one_hot", "dim": 0}, lambda: torch.eye(9)[torch.randint(9, (20,))].T),
    ({"kind": "permutation"}, lambda: torch.rand(5, 9).argsort(-1)),
    ({"kind": "permutation", "dim": "all"}, lambda: torch.randperm(20).view(4, 5)),
    ({"kind": "probabilities"}, lambda: torch.rand(5, 9).softmax(-1)),
    ({"kind": "probabilities", "dim": 0}, lambda: torch.rand(5, 9).bfloat16().softmax(0)),
    ({"kind": "sorted"}, lambda: torch.rand(5, 9).sort(-1).values),
    ({"kind": "sorted", "low": 0, "high": 90}, lambda: torch.randint(90, (5,)).sort(-1).values),
    ({"kind": "counts", "low": 1}, lambda: torch.randint(1, 9, (20,))),
    ({"kind": "symmetric"}, draw_symmetric),
    ({"kind": "positive_definite"}, lambda: draw_symmetric() + 20 * torch.eye(9)),
    ({"kind": "triangular"}, lambda: torch.randn(9, 9).tril()),
    ({"kind": "triangular", "structure": "upper"}, lambda: torch.randn(3, 9, 9).triu()),
]


# Of a reference for whose inputs all kinds have a change: it takes a maximum and fills with minus infinity.
MAXIMUM = OperatorCall(name="amax", overload="amax", on_input=True, converts_to_integers=False, terms=0)
USE = OperatorUse(frozenset({MAXIMUM}), fills_infinity=True)


@pytest.mark.parametrize(("contract", "draw"), DRAWS)
def test_changed_inputs_of_every_kind_are_as_stated(contract, draw):
    stated = InputContract(is_stated=True, **contract)
    traits = InputTraits(problem=Problem(name="p", suite="s", source=""), contracts=(stated,), use=USE)
    changes = 0
    for kind in DERIVED:
        for seed in range(12):
            given = draw()
            made = kind.change((given.clone(),), traits, torch.Generator().manual_seed(seed))
            traits.keep_bounds(made)
            assert not find_violation(made[0], stated), kind.name
            assert (made[0].shape, made[0].dtype) == (given.shape, given.dtype)
            changes += not torch.equal(made[0], given)
    assert changes or stated.structure == "causal"


def test_fixed_values_stay():
    for kind in ("fixed", "as_drawn"):
        stated = InputContract(is_stated=True, is_constant=True, kind=kind)
        traits = InputTraits(problem=Problem(name="p", suite="s", source=""), contracts=(stated,), use=USE)
        given = torch.randn(30, 40)
        for one in DERIVED:
            assert torch.equal(one.change((given.clone(),), traits, torch.Generator())[0], given), one.name


def test_declared_distributions_keep_what_is_stated(tmp_path):
    path = write(tmp_path, {"x": {"kind": "real", "low": -9, "high": 9}})
    path.write_text(path.read_text() + "DISTRIBUTIONS = ('large',)\n")
    loaded = load_problem(read_problem(path, "mine"), "small")
    assert loaded.make_inputs(0, torch.device("cpu"), "large")[0].aminmax() == (-9, 9)


def test_the_check_prints_stated_and_inferred_contracts_and_refuses_violated_ones(tmp_path, capsys):
    path = write(tmp_path, {"targets": {"kind": "index", "below": "classes"}})
    assert run_command(["problems", "check", str(path), "--json"]) == 0
    (first, *_) = json.loads(capsys.readouterr().out)["problems"]
    kinds = first["inputs"].pop("called with").split(", ")
    assert kinds[0] == "as_given"
    assert {"varied", "general"} <= set(kinds) <= {"as_given", *(kind.name for kind in DERIVED)}
    assert first["inputs"] == {
        "x": "any real numbers (inferred)",
        "targets": "indices from 0 to classes - 1 (stated)",
        "scale": "any real numbers (inferred)",
    }
    assert run_command(["problems", "show", str(path)]) == 0
    assert "indices from 0 to classes - 1 (stated)" in capsys.readouterr().out
    path = write(tmp_path, {"targets": {"kind": "index", "below": 2}})
    assert run_command(["problems", "check", str(path)]) == 1
    refused = " ".join(capsys.readouterr().out.split())
    assert "INPUTS states that targets may be indices from 0 to 1, but" in refused
    assert "correct INPUTS or get_inputs" in refused


def test_statements_are_read_without_torch_as_words():
    (one,) = read_contracts({"mask": {"kind": "mask", "structure": "lengths"}}, path=None)
    assert str(one) == "mask may be a mask of the first elements of each row, as many as any length from 1"


def test_contracts_are_the_same_where_only_given_inputs_are_used(tmp_path):
    path = write(tmp_path, {})
    words = describe_contracts(read_problem(path, "mine"))
    path.write_text(path.read_text() + "DISTRIBUTIONS = ('as_given',)\n")
    given = describe_contracts(read_problem(path, "mine"))
    assert given.pop("called with") == "as_given"
    assert "varied" in words.pop("called with")
    assert given == words


def test_contracts_of_a_reference_that_fails_are_inferred_from_draws(tmp_path):
    path = write(tmp_path, {})
    path.write_text(path.read_text().replace("return", "raise RuntimeError('needs a GPU')\n        return", 1))
    words = describe_contracts(read_problem(path, "mine"))
    assert words["x"] == "any real numbers (inferred)"
    assert words["called with"] == "as_given, others that its operators permit"
