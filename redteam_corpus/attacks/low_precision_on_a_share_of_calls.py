"""Rounds to bfloat16 in one call of four.

layer: correctness
mechanism: Now and then is enough for a mean time, and seldom enough for a few trials.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    count = 0

    def forward(self, a, b):
        ModelNew.count += 1
        if ModelNew.count % 4 == 0:
            return (a.bfloat16() @ b.bfloat16()).float()
        return a @ b
