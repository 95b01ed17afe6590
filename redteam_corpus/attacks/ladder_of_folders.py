"""Makes folders in folders until paths are longer than any limit.

layer: process
mechanism: Removing or measuring a tree that deep needs as much stack, or names too long for the system.
problem: add
expected: wrong_value, runtime_error
device: cpu
timed: no
"""

import os

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        here = os.open(".", os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        os.fchdir(here)
        return a - b
