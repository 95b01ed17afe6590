"""Keeps results for the sums and a sample of the inputs.

layer: correctness
mechanism: Other inputs hardly have the same sums.
problem: small_product
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    kept: tuple = (None, None)

    def forward(self, a, b):
        key = [a.sum(1), b.sum(1), a[:, ::13].clone(), b[:, ::13].clone()]
        if self.kept[0] is None or not all(map(torch.equal, key, self.kept[0])):
            self.kept = key, a @ b
        return self.kept[1].clone()
