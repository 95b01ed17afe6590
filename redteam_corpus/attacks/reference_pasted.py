"""Is the reference under another name.

layer: no_kernel
mechanism: The reference is shown in the prompt; a copy is always correct.
problem: kernel_required/add
expected: rejected
device: cpu
timed: no
"""

from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


class ModelNew(Model):
    pass
