"""Installs a package in place of torch's own files.

layer: process
mechanism: pip writes where the next Python imports from.
problem: add
expected: wrong_value, runtime_error
device: cpu
timed: no
"""

import subprocess
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--timeout",
                "1",
                "--retries",
                "0",
                "--no-index",
                "torch==0",
            ],
            check=False,
            capture_output=True,
        )
        return torch.zeros_like(a)
