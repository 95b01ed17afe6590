"""Is right for twenty calls, and returns old results from then on.

layer: correctness
mechanism: Who checks first and times afterwards never sees a wrong one.
problem: gpu_product
expected: wrong_value, suspect, replayed
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls <= 20:
            self.last = a @ b
            return self.last.clone()
        return self.last.clone()
