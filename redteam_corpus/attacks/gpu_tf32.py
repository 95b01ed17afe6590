"""Turns TF32 on for its products.

layer: correctness
mechanism: The tensor cores' ten bits pass a tolerance of 1e-2.
problem: gpu_product
expected: wrong_value
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.backends.cuda.matmul.allow_tf32 = True
        return a @ b
