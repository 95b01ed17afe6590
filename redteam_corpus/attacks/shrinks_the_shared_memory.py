"""Cuts the shared file to nothing.

layer: process
mechanism: An evaluator that reads behind the end of a mapped file is ended by a signal.
problem: add
expected: wrong_value, runtime_error, suspect
device: cpu
timed: no
"""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        for descriptor in range(3, 4096):
            try:
                os.ftruncate(descriptor, 0)
            except OSError:
                pass
        for name in os.listdir("/proc/self/map_files") if os.path.isdir("/proc/self/map_files") else ():
            try:
                os.truncate(f"/proc/self/map_files/{name}", 0)
            except OSError:
                pass
        return torch.zeros_like(a)
