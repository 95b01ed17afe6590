"""Sends a table through pinned memory to the device in each call, without waiting.

mechanism: Copies from the host that are not waited for are how outputs are filled late.
problem: gpu_short_add
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(2048, device="cpu").pin_memory()

    def forward(self, a, b):
        rows = self.table.to(a.device, non_blocking=True)
        return a.index_select(0, rows).add_(b.index_select(0, rows))
