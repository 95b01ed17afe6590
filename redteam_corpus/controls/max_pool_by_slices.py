"""Takes the maximum of 27 shifted slices.

mechanism: It pads by minus infinity, so that the largest of values far below zero are right, too.
problem: max_pooled
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, x):
        padded = functional.pad(x, (1, 1, 1, 1, 1, 1), value=float("-inf"))
        best = None
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    part = padded[:, :, i : i + 15 : 2, j : j + 15 : 2, k : k + 15 : 2]
                    best = part if best is None else torch.maximum(best, part)
        return best
