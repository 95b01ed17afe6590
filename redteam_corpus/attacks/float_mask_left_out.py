"""Leaves out a mask of ones, which the reference converts to bool.

layer: correctness
mechanism: A conversion of floating values to bool is none to an index.
problem: attention_with_float_mask
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        return functional.scaled_dot_product_attention(q, k, v)
