"""Problems and candidates in plain Python, from the code of one call; and what an evaluation found."""

HEAD = """
import os, time
import torch
from torch import nn
"""

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}

def get_inputs():
    return {inputs}

def get_init_inputs():
    return []

{settings}
"""


def write_problem(forward, *, init="pass", inputs="[torch.randn(64, 65)]", settings=""):
    return PROBLEM.format(init=indent(init), forward=indent(forward), inputs=inputs, settings=settings)


def write_candidate(forward, *, init="pass"):
    source = PROBLEM.format(init=indent(init), forward=indent(forward), inputs="[]", settings="")
    return HEAD + source.replace("class Model(", "class ModelNew(")


def indent(code):
    return code.strip().replace("\n", "\n        ")


def find(evaluation, check):
    """The one finding of that check; None without any."""
    found = [finding for finding in evaluation.findings if finding.check == check]
    assert len(found) <= 1
    return found[0] if found else None


def warnings_of(evaluation):
    return {finding.check for finding in evaluation.findings if finding.severity == "warning"}
