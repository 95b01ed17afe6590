"""Programs add to one element by loads and stores.

forward: x.sum().reshape(1)
inputs: x=torch.randn(1000)
finding: global_race
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.load(out) + tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
