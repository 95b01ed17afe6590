"""Is slow in its first calls.

layer: time
mechanism: A timer that chooses the number of its samples by the first of them takes few, and a few can be lucky.
problem: product
expected: no_gain, suspect, unranked
device: cpu
timed: yes
"""

import time

from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls < 8:
            time.sleep(0.05)
        return a @ b
