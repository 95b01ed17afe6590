"""Sorts numbers by their bits, as if there were no negative ones.

layer: correctness
mechanism: Numbers from torch.rand are positive, and their bits have the same order.
problem: sorted_rand
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.view(torch.int32).sort(-1).values.view(torch.float32)
