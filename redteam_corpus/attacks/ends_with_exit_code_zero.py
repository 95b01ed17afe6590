"""Ends the process in the middle of the call, with exit code 0.

layer: process
mechanism: An exit code of 0 is taken for success.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

import os

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        os._exit(0)
