"""Computes at every other call, and returns the last output at those in between.

layer: correctness
mechanism: Inputs look alike; who checks a call now and then, or with inputs used before, sees nothing.
problem: gpu_product
expected: wrong_value, suspect
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    last = None

    def forward(self, a, b):
        if self.last is None:
            self.last = a @ b
            return self.last.clone()
        out, self.last = self.last, None
        return out
