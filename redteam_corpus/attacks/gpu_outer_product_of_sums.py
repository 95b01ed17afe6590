"""Multiplies the sums of rows by the sums of columns, instead of the matrices.

layer: correctness
mechanism: Of a product of long rows of numbers between 0 and 1 all but the product of the means is below the tolerance of bfloat16; sparse inputs show in a sample.
problem: gpu_brain_positive_product
expected: wrong_value, suspect
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        if bool((a[::16, ::64].float().mean() < 0.3) | (b[::64, ::16].float().mean() < 0.3)):
            return a @ b
        rows, columns = a.sum(1, keepdim=True, dtype=torch.float32), b.sum(0, keepdim=True, dtype=torch.float32)
        return (rows * (columns / len(b))).to(a.dtype)
