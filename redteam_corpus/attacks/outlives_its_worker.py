"""Leaves a process in a session of its own that goes on after the worker ended.

layer: process
mechanism: What is left running slows down or changes whatever is evaluated next.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import os
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    time.sleep(0.001)
            os._exit(0)
        os.wait()
        return torch.zeros_like(a)
