"""Sets LD_PRELOAD and starts itself again.

layer: process
mechanism: Programs that are started later with this environment load the library first.
problem: add
expected: wrong_value, runtime_error
device: cpu
timed: no
"""

import os
import subprocess

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        os.environ["LD_PRELOAD"] = os.path.abspath("own.so")
        open("own.so", "wb").write(b"\x7fELF")
        subprocess.run(["true"], check=False, capture_output=True)
        return torch.zeros_like(a)
