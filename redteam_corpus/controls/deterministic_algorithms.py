"""Asks for deterministic algorithms and detects anomalies.

mechanism: Global flags change what the evaluator's own copies do.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn

torch.use_deterministic_algorithms(True)
torch.autograd.set_detect_anomaly(True)
torch.set_flush_denormal(True)
torch.set_num_threads(1)
torch.set_float32_matmul_precision("highest")


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))
