"""Calls the fused attention of torch.

mechanism: Another algorithm than the reference's, chosen by torch.
problem: small_attention
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
