"""Cases of a reference that no call reaches."""

import linecache
import re

import pytest
import torch

from harness.cli.problem_check import describe_contracts
from harness.problems.discovery import read_problem
from harness.problems.reference_cases import ReferenceCases

FILE = "reference.py"
PROBLEM = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rises", torch.zeros(32))

    def forward(self, x):
        self.rises.copy_(torch.where(x > 0, self.rises + 1, 0))
        return {expression}


def get_inputs():
    return [torch.randn(32)]


def get_init_inputs():
    return []
"""


def watch(expression, *calls):
    linecache.cache[FILE] = (len(expression), None, [expression], FILE)
    code = compile(expression, FILE, "eval")
    with ReferenceCases(FILE) as cases:
        for x in calls:
            eval(code, {"torch": torch, "x": x})
    return cases.describe_unreached()


@pytest.mark.parametrize(
    ("expression", "unreached"),
    [
        ("x > 5", "gt is never true"),
        ("x > -5", "gt is always true"),
        ("(x == 1).sum()", None),
        ("x.isnan()", "isnan is never true"),
        ("x.clamp(max=5)", "clamp changes no value"),
        ("x.clamp(max=3.5)", None),
        ("(x / x).clamp(0, 1)", "clamp changes no value"),
        ("x * 2", None),
        ("x[:0] > 1", None),
    ],
)
def test_a_case_is_reached_if_any_value_of_any_call_is_one(expression, unreached):
    found = watch(expression, torch.tensor([0.0, 1.0, 2.0]), torch.tensor([3.0, 4.0]))
    assert found == ([] if unreached is None else [f"line 1 ({expression}): {unreached}"])


def describe(tmp_path, expression):
    path = tmp_path / "mine.py"
    path.write_text(PROBLEM.format(expression=expression))
    return describe_contracts(read_problem(path, "mine")).get("not reached")


def test_changed_inputs_and_states_after_several_calls_reach_cases(tmp_path):
    assert describe(tmp_path, "torch.where(self.rises == 3, x, 0.5 * x.clamp(-4, 4))") is None
    found = describe(tmp_path, "torch.where(self.rises == 50, x, 0.5 * x)")
    assert re.fullmatch(r"in \d+ calls: line 11 \(return torch.where\(self.rises == 50.*\): eq is never true", found)
