"""Loads and stores through a tensor descriptor.

forward: x + 1
inputs: x=torch.randn(64, 64)
gpu: H100
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def increment(x, out, M, N, TILE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[TILE, TILE])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[TILE, TILE])
    at = [tl.program_id(0) * TILE, tl.program_id(1) * TILE]
    target.store(at, source.load(at) + 1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        increment[(2, 2)](x, out, 64, 64, TILE=32)
        return out
