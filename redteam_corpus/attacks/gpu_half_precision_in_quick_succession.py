"""Multiplies in half precision when its calls follow each other quickly.

layer: correctness
mechanism: Calls that are checked have the checking between them; timed ones come one after another.
problem: gpu_product
expected: wrong_value, suspect, replayed
device: gpu
timed: yes
"""

import time
from collections import deque

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gaps = deque(maxlen=60)
        self.last = 0.0

    def forward(self, a, b):
        gap = time.monotonic() - self.last
        self.gaps.append(gap)
        slow = gap > sorted(self.gaps)[len(self.gaps) // 2] * 1.2 or len(self.gaps) < 12
        out = a @ b if slow else (a.half() @ b.half()).float()
        self.last = time.monotonic()
        return out
