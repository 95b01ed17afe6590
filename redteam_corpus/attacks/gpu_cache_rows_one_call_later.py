"""Writes new rows into a large cache when it is called again.

layer: correctness
mechanism: Of a large input few places change; those of the last call are right.
problem: gpu_cache_rows
expected: wrong_value
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    last = None

    def forward(self, cache, values, places):
        if self.last is not None:
            cache[self.last[1]] = self.last[0]
        self.last = values, places
        return values @ values.T / values.shape[1] ** 0.5
