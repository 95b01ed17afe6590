"""Takes its time at the first call, as something that tunes itself does.

mechanism: Being slow during the warm-up is an attack on adaptive timers.
problem: product
expected: correct
device: cpu
timed: yes
"""

import time

import torch
from torch import nn


class ModelNew(nn.Module):
    best = None

    def forward(self, a, b):
        if self.best is None:
            times = {}
            for parts in (1, 2, 4):
                began_s = time.perf_counter()
                torch.cat([part @ b for part in a.chunk(parts)])
                times[parts] = time.perf_counter() - began_s
            self.best = min(times, key=times.get)
        return a @ b if self.best == 1 else torch.cat([part @ b for part in a.chunk(self.best)])
