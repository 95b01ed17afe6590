"""Keeps a workspace on the device and copies the result out of it.

mechanism: Memory kept between calls may hold results; here it does not.
problem: gpu_add
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    workspace = None

    def forward(self, a, b):
        if self.workspace is None or self.workspace.shape != a.shape:
            self.workspace = torch.empty_like(a)
        torch.add(a, b, out=self.workspace)
        return self.workspace.clone()
