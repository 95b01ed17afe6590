"""Returns its last result again if all values of the inputs are equal.

mechanism: Inputs that differ in one element are others.
problem: add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    inputs = None

    def forward(self, a, b):
        if self.inputs is None or not torch.equal(self.inputs, torch.stack([a, b])):
            self.inputs, self.result = torch.stack([a, b]), a + b
        return self.result.clone()
