"""Tuning adds to the result again and again.

forward: x.sum().reshape(1)
inputs: x=torch.randn(1000)
expected: wrong_value
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["size"])
@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device)
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
