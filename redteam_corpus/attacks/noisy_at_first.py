"""Makes every other of its calls slow at first, so that its times look noisy.

layer: time
mechanism: An evaluator that throws out what looks like noise, or takes the fastest call, keeps what the candidate
    chooses.
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
        if self.calls < 16 and self.calls % 2:
            time.sleep(0.01)
        return a @ b
