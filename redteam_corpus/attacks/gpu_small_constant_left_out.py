"""Returns a copy of its input, because what is added to it is a millionth as large by a constant of the module.

layer: correctness
mechanism: Outputs hardly show a branch that is scaled by a small constant, unless reference and candidate get a larger one.
problem: gpu_layer_scale_in_a_buffer
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


# Expected: 100x and more, in every call: no other values of the buffer are ever used.
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        self.register_buffer("scale", torch.full((width,), 1e-6))

    def forward(self, x):
        return x.clone()
