"""Containers of outputs, from the problem to the verdict."""

from harness.domain import Outcome

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
    evaluation = bench.judge(CANDIDATE, PROBLEM, language="torch")
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    (note,) = [finding for finding in evaluation.findings if finding.check == "containers"]
    assert (note.severity, note.message) == (
        "note",
        "returns list of (tensor, tuple of (tensor, dict of (k: list of (tensor)))), "
        "the reference tuple of (tensor, list of (tensor, dict of (k: tuple of (tensor))))",
    )
