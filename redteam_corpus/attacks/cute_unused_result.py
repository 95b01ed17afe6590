"""Launches its kernel of CuTe DSL, drops the result, and adds with torch.

layer: no_kernel
mechanism: A kernel is launched in each call, and the profile shows it.
problem: kernel_required/gpu_add
expected: rejected
device: gpu
timed: no
language: cute
"""

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from torch import nn


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 256 + thread
    if at < cute.size(out):
        out[at] = a[at] + b[at]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    add_kernel(a, b, out).launch(grid=[cute.ceil_div(cute.size(out), 256), 1, 1], block=[256, 1, 1])


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add(*(from_dlpack(one.reshape(-1)) for one in (a.contiguous(), b.contiguous(), out)))
        return a + b
