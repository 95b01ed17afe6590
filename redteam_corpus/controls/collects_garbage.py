"""Has the garbage collector run in its call.

mechanism: The evaluator turns the collector off for timed calls; this one turns it on again.
problem: product
expected: correct
device: cpu
timed: yes
"""

import gc

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a @ b
        gc.collect()
        return out
