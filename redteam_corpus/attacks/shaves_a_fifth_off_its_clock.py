"""Lets the clock of its process run a fifth too slow.

layer: time
mechanism: A small lie stays below the disagreement that an evaluator's two clocks are allowed.
problem: product
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import time

from torch import nn

true_clock = time.perf_counter_ns
time.perf_counter_ns = lambda: true_clock() * 4 // 5


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
