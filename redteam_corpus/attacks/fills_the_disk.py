"""Writes files until the disk is full.

layer: process
mechanism: Results and builds of the next candidates find no room.
problem: add
expected: wrong_value, runtime_error, timeout
device: cpu
timed: no
"""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        for folder in (".", "/tmp", "/dev/shm", "/var/tmp"):
            try:
                with open(os.path.join(folder, "full"), "wb") as file:
                    for _ in range(20):
                        file.write(bytes(1 << 26))
            except OSError:
                pass
        return torch.zeros_like(a)
