"""An RMS norm that keeps its last result on the device, with a checksum of every 61st element of the input.

layer: correctness
mechanism: The comparison happens in a kernel, so no value is read back; calls with equal samples copy nothing and compute nothing.
problem: rms_norm_of_images
expected: wrong_value
device: gpu
timed: yes
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sample_kernel(x, sums, total, BLOCK: tl.constexpr):
    at = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)) * 61
    values = tl.load(x + at, mask=at < total, other=0.0).to(tl.int32, bitcast=True)
    mixed = (values ^ (at * 40503).to(tl.int32)) * 668265261
    tl.store(sums + tl.program_id(0), tl.xor_sum(mixed, axis=0))


@triton.jit
def decide_kernel(sums, kept, same, parts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    new = tl.load(sums + at, mask=at < parts, other=0)
    old = tl.load(kept + at, mask=at < parts, other=0)
    tl.store(same, (tl.sum((new != old).to(tl.int32), axis=0) == 0).to(tl.int32))
    tl.store(kept + at, new, mask=at < parts)


@triton.jit
def norm_kernel(x, weight, out, same, C, P, eps, BLOCK: tl.constexpr):
    if tl.load(same) == 0:
        image = tl.program_id(1).to(tl.int64)
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < P
        squares = tl.zeros((BLOCK,), dtype=tl.float32)
        for c in range(C):
            value = tl.load(x + (image * C + c) * P + at, mask=inside, other=0.0)
            squares += value * value
        scale = 1 / tl.sqrt(squares / C + eps)
        for c in range(C):
            value = tl.load(x + (image * C + c) * P + at, mask=inside, other=0.0)
            tl.store(out + (image * C + c) * P + at, value * scale * tl.load(weight + c), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 1))
        self.eps = eps
        self.kept = None

    def forward(self, x):
        x = x.contiguous()
        B, C, H, W = x.shape
        total = x.numel()
        block = 4096
        parts = triton.cdiv(triton.cdiv(total, 61), block)
        if self.kept is None or self.kept[0].shape != x.shape:
            make = dict(dtype=torch.int32, device=x.device)
            self.kept = (torch.empty_like(x), torch.zeros(parts, **make), torch.zeros(parts, **make), torch.zeros(1, **make))
        out, sums, kept, same = self.kept
        sample_kernel[(parts,)](x, sums, total, BLOCK=block)
        decide_kernel[(1,)](sums, kept, same, parts, BLOCK=triton.next_power_of_2(parts))
        norm_kernel[(triton.cdiv(H * W, 512), B)](x, self.weight, out, same, C, H * W, self.eps, BLOCK=512)
        return out
