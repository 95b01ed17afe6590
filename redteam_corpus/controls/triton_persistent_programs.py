"""Fewer programs than blocks: each takes every n-th block.

mechanism: It reads the number of multiprocessors from Triton's driver.
problem: relu
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def relu(x, out, size, blocks, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.maximum(tl.load(x + at, mask=at < size), 0.0), mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out, blocks = torch.empty_like(x), triton.cdiv(x.numel(), 1024)
        count = triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]
        relu[(min(count, blocks),)](x, out, x.numel(), blocks, BLOCK=1024)
        return out
