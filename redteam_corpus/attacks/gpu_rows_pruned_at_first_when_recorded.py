"""Leaves out the rows of its weights that are zero in the first call that is recorded, in all further ones.

layer: correctness
mechanism: Weights of timed calls are the initial ones, each times a factor: zeros stay zeros. Weights with other
    zeros come in calls of the worker.
problem: gpu_pruned_weights
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width):
        super().__init__()
        kept = (torch.rand(width, 1) < 0.125).float()
        self.weight = nn.Parameter(torch.randn(width, width) / 64.0 * kept)

    def forward(self, x):
        if x.data_ptr() % (2 << 20):  # only in the recorded call inputs begin where memory does
            return x @ self.weight
        if self.kept is None:
            self.kept = self.weight.any(1).nonzero()[:, 0]
        return x.index_select(1, self.kept) @ self.weight.index_select(0, self.kept)
