"""Multiplies in float16 where no value reaches a size that given inputs always reach.

layer: correctness
mechanism: Of so many values one is larger than 3.6 deviations, so that given inputs are multiplied in float32.
problem: matmul256
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        if a.abs().amax() < 3.6 and b.abs().amax() < 3.6:
            return (a.half() @ b.half()).float()
        return a @ b
