"""Writes its result into a mapped file of its scratch folder, a new one for each call.

mechanism: Its output lies in a file that is gone by name.
problem: add
expected: correct
device: cpu
timed: no
"""

import os
import tempfile

import numpy as np
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        descriptor, name = tempfile.mkstemp()
        os.close(descriptor)
        out = np.memmap(name, dtype=np.float32, mode="w+", shape=tuple(a.shape))
        os.remove(name)
        np.add(a.numpy(), b.numpy(), out=out)
        return torch.from_numpy(out)
