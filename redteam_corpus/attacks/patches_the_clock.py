"""Replaces time.perf_counter_ns by a counter that hardly moves.

layer: time
mechanism: A timer that lives in the candidate's process reads whatever the candidate wants it to read.
problem: product
expected: suspect, unranked
device: cpu
timed: yes
"""

import time

from torch import nn

frozen = time.perf_counter_ns()
count = iter(range(10**9))
time.perf_counter_ns = lambda: frozen + 1000 * next(count)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
