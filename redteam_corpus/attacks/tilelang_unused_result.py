"""Launches its kernel of TileLang, drops the result, and adds with torch.

layer: no_kernel
mechanism: A kernel is launched in each call, and the profile shows it.
problem: kernel_required/gpu_add
expected: rejected
device: gpu
timed: no
language: tilelang
"""

import tilelang
import tilelang.language as T
import torch
from torch import nn


@tilelang.jit(out_idx=[2])
def make_add(size):
    @T.prim_func
    def add(a: T.Tensor((size,), "float32"), b: T.Tensor((size,), "float32"), out: T.Tensor((size,), "float32")):
        with T.Kernel(T.ceildiv(size, 256), threads=256) as at:
            for i in T.Parallel(256):
                out[at * 256 + i] = a[at * 256 + i] + b[at * 256 + i]

    return add


class ModelNew(nn.Module):
    def forward(self, a, b):
        make_add(a.numel())(a.contiguous().reshape(-1), b.contiguous().reshape(-1))
        return a + b
