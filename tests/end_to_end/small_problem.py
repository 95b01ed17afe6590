"""A small problem whose model is made for a number of columns, as its file has it, and programs for it."""

from __future__ import annotations

from pathlib import Path

from harness.domain import Problem
from harness.problems.discovery import parse_problem

MODEL = """
import torch
from torch import nn

class NAME(nn.Module):
    def __init__(self, columns):
        super().__init__()
        INIT

    def forward(self, x):
        FORWARD
"""
INPUTS = """
rows, columns = 64, 48

def get_inputs():
    return [DRAWN]

def get_init_inputs():
    return [columns]

"""
WEIGHT = "self.weight = nn.Parameter(torch.randn(columns))"
DRAWN = "torch.randn(rows, columns)"


def read(forward: str, *, init: str = WEIGHT, drawn: str = DRAWN, settings: str = "") -> Problem:
    text = _write_model("Model", forward, init) + INPUTS.replace("DRAWN", drawn) + settings
    return parse_problem(text, Path("toy.py"), "tiny")


def write(forward: str, *, init: str = WEIGHT) -> str:
    """A candidate."""
    return _write_model("ModelNew", forward, init)


def _write_model(name: str, forward: str, init: str) -> str:
    body, constructor = (lines.replace("\n", "\n        ") for lines in (forward, init))
    return MODEL.replace("NAME", name).replace("INIT", constructor).replace("FORWARD", body)
