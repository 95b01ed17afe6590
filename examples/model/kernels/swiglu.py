"""SwiGLU of decoder.py in Triton."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def swiglu(gate, up, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    values = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)
    silu = (values * tl.sigmoid(values)).to(y.dtype.element_ty).to(tl.float32)  # rounded as in the reference
    factors = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (silu * factors).to(y.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        y = torch.empty_like(gate)
        swiglu[(triton.cdiv(y.numel(), 2048),)](gate, up, y, y.numel(), BLOCK=2048, num_warps=8)
        return y
