"""Allocates until nothing is left.

layer: process
mechanism: The machine kills somebody, perhaps the evaluator.
problem: add
expected: out_of_memory, runtime_error
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        held = []
        while True:
            held.append(torch.empty(1 << 28))
