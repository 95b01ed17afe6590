"""A script with a module to capture, and what its capture wrote."""

from pathlib import Path

from harness.problems.discovery import find_suite

PART = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        {init}

    def forward(self, x{extra}):
        {forward}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.other = nn.Linear(64, 64)

    def forward(self, x):
        return self.other(self.part(x{given}))
"""


def written(folder=Path("captured/net")):
    return {problem.name: problem for problem in find_suite(folder)}


def groups_of(record):
    return {group["kind"]: group for group in record["groups"]}
