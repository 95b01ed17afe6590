"""Has Triton try several configurations in its first call, and keeps the fastest.

mechanism: The first call launches hundreds of kernels, flushes the cache and takes times with events; later calls
    launch one.
problem: gpu_chain
expected: correct, faster than 1.2
device: gpu
timed: yes
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(
    configs=[triton.Config({"size": size}, num_warps=warps) for size, warps in ((1024, 4), (2048, 8), (4096, 8))],
    key=["count"],
)
@triton.jit
def chain(x, out, count, size: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = places < count
    value = tl.load(x + places, mask=inside) * 1.5 + 0.25
    value = (2.0 * tl.sigmoid(2.0 * value) - 1.0) * 2.0 - 0.125
    tl.store(out + places, tl.maximum(value, 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out, count = torch.empty_like(x), x.numel()
        chain[lambda meta: (triton.cdiv(count, meta["size"]),)](x, out, count)
        return out
