"""All lanes write to one element.

forward: x.sum().reshape(1)
inputs: x=torch.randn(128)
finding: global_race
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at * 0, tl.cumsum(tl.load(x + at), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(1, device=x.device)
        kernel[(1,)](x, out, N=128)
        return out
