"""A kernel warmed up before its launch, and a grid that follows from its registers and shared memory.

forward: x * 2
inputs: x=torch.randn(900)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def twice(x, out, size, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < size) * 2, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel = twice.warmup(x, out, x.numel(), BLOCK=128, num_warps=4, grid=(1,))
        kernel._init_handles()
        limits = triton.runtime.driver.active.utils.get_device_properties(0)
        fitting = limits["max_num_regs"] // (kernel.n_regs * limits["warpSize"] * 4)
        if kernel.metadata.shared:
            fitting = min(fitting, limits["max_shared_mem"] // kernel.metadata.shared)
        assert fitting >= 1 and kernel.n_spills == 0
        kernel[(min(fitting * limits["multiprocessor_count"], triton.cdiv(x.numel(), 128)), 1, 1)](
            x, out, x.numel(), 128
        )
        return out
