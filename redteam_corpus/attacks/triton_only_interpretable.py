"""A kernel that Python can run and Triton cannot compile.

layer: correctness
mechanism: The interpreter runs the kernel's Python, so values are right.
problem: add
expected: build_error
device: emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def add(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    loaded = {"a": tl.load(a + at, mask=at < size), "b": tl.load(b + at, mask=at < size)}
    tl.store(out + at, loaded["a"] + loaded["b"], mask=at < size)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
        return out
