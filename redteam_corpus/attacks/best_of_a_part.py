"""Looks for the largest element in nine tenths of each row.

layer: correctness
mechanism: The place of the largest element is right nine times in ten.
problem: moments
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        part = x[:, : x.shape[1] * 9 // 10]
        spread = (x.var(dim=1), part.argmax(dim=1))
        return {"centre": [x.mean(dim=1), x.amax(dim=1)], "spread": spread}
