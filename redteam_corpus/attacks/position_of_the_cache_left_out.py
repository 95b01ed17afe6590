"""Writes to the place in a cache that is always the given one.

layer: correctness
mechanism: The position is an integer, and the reference writes to where it says.
problem: cache_at_a_position
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, q, k, v, keys, values, position):
        keys[:, :, 50:51] = k
        values[:, :, 50:51] = v
        return functional.scaled_dot_product_attention(q, keys[:, :, :51], values[:, :, :51])
