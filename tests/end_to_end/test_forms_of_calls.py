"""Forms of arguments and outputs, from the problem to the verdict."""

import re
from pathlib import Path

from harness.domain import Outcome
from harness.problems.discovery import parse_problem

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a):
        return a + 1, [a.sum(0), {"k": (a > 0,)}]

rows, columns = 64, 65

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, a):
        return [a + 1, (a.sum(0), {"k": [a > 0]})]
"""


def test_lists_for_tuples_are_a_note(bench):
    evaluation = bench.evaluate(CANDIDATE, PROBLEM, language="torch")
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    (note,) = [finding for finding in evaluation.findings if finding.check == "containers"]
    assert (note.severity, note.message) == (
        "note",
        "returns list of (tensor, tuple of (tensor, dict of (k: list of (tensor)))), "
        "the reference tuple of (tensor, list of (tensor, dict of (k: tuple of (tensor))))",
    )


BY_NAME = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, channels, gain=2.0, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels))
        self.gain = gain

    def forward(self, query, mask=None, scale=1.0):
        y = query * self.weight * self.gain * scale
        return y if mask is None else y.masked_fill(mask, 0.0)

def get_inputs():
    return {"scale": 0.5, "query": torch.randn(33, 65)}

def get_init_inputs():
    return [[], {"channels": 65, "gain": 3.0}]
"""
TAKER = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self, channels, gain):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels))
        self.gain = gain

    def forward(self, query, mask, scale):
        return query * (self.weight * (self.gain * scale))
"""


def test_arguments_by_name_reach_reference_and_candidate(bench):
    evaluation = bench.evaluate(TAKER, BY_NAME, language="torch")
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message


SHIFTED = """
import torch
from torch import nn

INPUTS = {"shift": {"kind": "integer", "low": 0, "high": 64}}

class Model(nn.Module):
    def forward(self, a, shift):
        return a.roll(shift, 1)

def get_inputs():
    return [torch.randn(33, 65), 3]

def get_init_inputs():
    return []
"""


def test_a_wrong_call_names_the_values_of_numbers(bench):
    candidate = SHIFTED.replace("Model(", "ModelNew(").replace("roll(shift, 1)", "roll(3, 1)")
    evaluation = bench.evaluate(candidate, parse_problem(SHIFTED, Path("p.py"), "suite"), language="torch")
    assert evaluation.outcome is Outcome.WRONG_VALUE
    named = re.search(r"called with shift = (\d+)", evaluation.message)
    assert named is not None and int(named[1]) != 3, evaluation.message
