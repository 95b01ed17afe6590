"""Works in a buffer that it keeps, and copies the result out of it.

mechanism: An evaluator that looks for state kept between calls may take the workspace for a cache of results.
problem: add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer = torch.empty(64, 65)

    def forward(self, a, b):
        torch.add(a, b, out=self.buffer)
        return self.buffer.clone()
