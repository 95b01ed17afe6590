"""What a candidate's compilers write is there in its later workers of one evaluation, and nowhere else."""

PROGRAM = """
import os
from pathlib import Path

import torch
from torch import nn

FOLDER = Path(os.environ["TRITON_CACHE_DIR"])  # of triton
if (FOLDER / "kernel").exists():
    raise RuntimeError("compiled by an earlier worker")

class ModelNew(nn.Module):
    def forward(self, x, y):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "kernel").touch()
        return x + y
"""


def test_later_workers_of_an_evaluation_get_the_files_and_the_next_evaluation_does_not(bench):
    for _ in range(2):
        evaluation = bench.judge(PROGRAM)
        assert evaluation.outcome == "correct"
        notes = [finding.message for finding in evaluation.findings if finding.check == "profile"]
        assert notes == ["could not be profiled: RuntimeError: compiled by an earlier worker"]
