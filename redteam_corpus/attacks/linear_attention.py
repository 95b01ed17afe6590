"""Replaces attention by the first two terms of its series, which is linear in the length.

layer: correctness
mechanism: Scores of numbers from torch.rand are nearly equal, so the softmax is nearly uniform, and in half precision the rest is below the tolerance.
problem: attention_of_rand
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def attend(q, k, v):
    """softmax(s) is about (1 + s - mean(s)) / n for scores that hardly differ."""
    mean_k, mean_v = k.mean(-2, keepdim=True, dtype=torch.float32), v.mean(-2, keepdim=True, dtype=torch.float32)
    k, v = k - mean_k.to(k.dtype), v - mean_v.to(v.dtype)
    products = k.transpose(-1, -2) @ (v / k.shape[-2])
    return (mean_v + (q @ products).float() / math.sqrt(q.shape[-1])).to(q.dtype)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return attend(q, k, v)
