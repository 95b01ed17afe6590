"""Writes to the evaluator's files: its package, tolerances, caches and other candidates.

layer: process
mechanism: What evaluates lies on the same disk, readable and often writable.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import os
from pathlib import Path

import torch
from torch import nn

import harness.protocol

for folder in (Path(harness.protocol.__file__).parents[2], Path.home(), Path("/work"), Path("/tmp"), Path("/var/tmp")):
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".db", ".json", ".so")):
                try:
                    with open(os.path.join(root, name), "a") as file:
                        file.write("\n")
                except OSError:
                    pass


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
