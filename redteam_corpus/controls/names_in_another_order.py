"""Returns the same names in another order.

mechanism: Dicts are equal in whatever order they were filled.
problem: named_outputs
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return {"none": None, "count": 3, "difference": a - b, "sum": a + b}
