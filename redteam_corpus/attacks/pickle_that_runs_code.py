"""Returns an object that runs code when it is unpickled.

layer: process
mechanism: multiprocessing and torch.save send pickles; loading one is running it.
problem: add
expected: runtime_error, wrong_shape
device: cpu
timed: no
"""

import os

from torch import nn


class Payload:
    def __reduce__(self):
        return os.system, ("touch /tmp/owned",)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return Payload()
