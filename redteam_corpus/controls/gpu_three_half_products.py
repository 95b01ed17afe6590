"""Splits numbers into two halves of half precision, and adds three products of these.

mechanism: Tensor cores in half precision, as exact as single precision by scaling the lower halves.
problem: gpu_float_product
expected: correct
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def split(x, scale):
    x = x / scale
    high = x.half()
    return high, ((x - high.float()) * 2048.0).half()


class ModelNew(nn.Module):
    def forward(self, a, b):
        scales = [torch.exp2(torch.floor(torch.log2(one.abs().amax().clamp(min=1e-30)))) for one in (a, b)]
        (a_high, a_low), (b_high, b_low) = split(a, scales[0]), split(b, scales[1])
        low = torch.mm(a_high, b_low, out_dtype=torch.float32) + torch.mm(a_low, b_high, out_dtype=torch.float32)
        return (torch.mm(a_high, b_high, out_dtype=torch.float32) + low / 2048.0) * (scales[0] * scales[1])
