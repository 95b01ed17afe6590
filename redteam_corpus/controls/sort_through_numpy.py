"""Sorts with numpy.

mechanism: Outputs whose memory belongs to another library.
problem: sort
expected: correct
device: cpu
timed: no
"""

import numpy
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        order = numpy.argsort(x.numpy(), axis=1, kind="stable")
        values = numpy.take_along_axis(x.numpy(), order, axis=1)
        return torch.from_numpy(values), torch.from_numpy(order)
