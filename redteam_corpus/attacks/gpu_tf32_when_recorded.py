"""Multiplies in TF32 in the call that is recorded.

layer: correctness
mechanism: Untimed calls are exact, and the recorded one is known by the address of its inputs.
problem: gpu_product
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.backends.cuda.matmul.allow_tf32 = a.data_ptr() % (2 << 20) == 0
        try:
            return a @ b
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
