"""Calls flash attention of torch with the given mask.

mechanism: The mask keeps half of the pairs; another order of operations in bfloat16.
problem: gpu_attention_with_given_mask
expected: correct
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
