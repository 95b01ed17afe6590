"""Returns its last result again if 64 samples of the inputs are equal.

layer: correctness
mechanism: Fresh inputs differ everywhere, so that a sample tells them apart. Inputs that differ in a part only do not.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    key = None

    def forward(self, a, b):
        key = torch.stack([a.flatten()[::65], b.flatten()[::65]])
        if self.key is None or not torch.equal(key, self.key):
            self.key, self.result = key, a + b
        return self.result.clone()
