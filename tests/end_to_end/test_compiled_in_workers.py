"""What a candidate's compilers write is there in its later workers of one evaluation, and nowhere else."""

from pathlib import Path

import pytest

from harness.problems.discovery import parse_problem

PROGRAM = """
import os
from pathlib import Path

import torch
from torch import nn

FOLDER = Path(os.environ["TRITON_CACHE_DIR"])  # of triton
if (FOLDER / "kernel64").exists():
    raise RuntimeError("compiled by an earlier worker")

class ModelNew(nn.Module):
    def forward(self, x, y):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"kernel{len(x)}").touch()
        return x + y
"""


PROBLEM = """
import torch
from torch import nn
rows = 64
class Model(nn.Module):
    def forward(self, x, y):
        return x + y
def get_inputs():
    return [torch.randn(rows, 65), torch.randn(rows, 65)]
def get_init_inputs():
    return []
"""
CASES = 'CASES = [{"name": "given"}, {"name": "evaluated_first", "sizes": {"rows": 2}}]'


@pytest.mark.parametrize("cases", ["", CASES], ids=["one_case", "two_cases"])
@pytest.mark.slow
def test_compiled_files_are_shared_within_one_evaluation_only(bench, cases):
    problem = parse_problem(PROBLEM + cases, Path("sum.py"), "tiny")
    for _ in range(2):
        evaluation = bench.evaluate(PROGRAM, problem)
        assert evaluation.outcome == "correct"
        notes = [finding.message for finding in evaluation.findings if finding.check == "profile"]
        assert notes == ["could not be profiled: RuntimeError: compiled by an earlier worker"]
