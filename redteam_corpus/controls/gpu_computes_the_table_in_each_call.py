"""Computes with the table in each call, and reads nothing back.

mechanism: The reference reads a value back, which is never false.
problem: gpu_checked_table
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, table):
        return x @ torch.tanh(table @ table.t())
