"""Writes new rows into a large cache by indexing.

mechanism: A call changes few places of a large input, and returns a small tensor.
problem: gpu_cache_rows
expected: correct
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, cache, values, places):
        cache[places] = values
        return values @ values.T / values.shape[1] ** 0.5
