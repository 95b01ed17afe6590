"""Keeps what depends on shapes only in an lru_cache.

mechanism: A cache that lives between calls; it holds no results.
problem: product
expected: correct
device: cpu
timed: yes
"""

from functools import lru_cache

import torch
from torch import nn


@lru_cache
def plan(rows, columns):
    half = rows // 2
    return [(slice(0, half), half), (slice(half, rows), rows - half)]


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        for part, _ in plan(a.shape[0], b.shape[1]):
            torch.mm(a[part], b, out=out[part])
        return out
