"""Is right in its first calls, and returns zeros ever after.

layer: time
mechanism: An evaluator that evaluates first and times afterwards does not look at the outputs of timed calls.
problem: product
expected: suspect, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        return a @ b if self.calls < 10 else torch.zeros(a.shape[0], b.shape[1])
