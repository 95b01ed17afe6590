"""Keeps a pool of threads between its calls.

mechanism: Threads that live on after a call are idle; an evaluator that counts threads would refuse them.
problem: product
expected: correct
device: cpu
timed: yes
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(2)

    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        half = a.shape[0] // 2
        parts = (slice(0, half), slice(half, None))
        list(self.pool.map(lambda part: torch.mm(a[part], b, out=out[part]), parts))
        return out
