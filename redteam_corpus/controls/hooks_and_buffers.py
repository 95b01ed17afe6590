"""Uses forward hooks and a buffer that is not part of its state.

mechanism: Hooks run outside of forward, and change what it returns.
problem: add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1), persistent=False)
        self.register_forward_hook(lambda module, inputs, out: out + inputs[1] * module.one)

    def forward(self, a, b):
        return a * self.one
