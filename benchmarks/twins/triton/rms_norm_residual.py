"""One program per row, which stays in registers."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def norm_kernel(x, residual, weight, out, total, features, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * features
    at = tl.arange(0, BLOCK)
    inside = at < features
    left = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(residual + row + at, mask=inside, other=0.0).to(tl.float32)
    rounded = (left + right).to(tl.bfloat16)
    tl.store(total + row + at, rounded, mask=inside)
    values = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / features + eps)
    factors = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row + at, (values * scale * factors).to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.5 * torch.randn(features, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        out, total, features = torch.empty_like(x), torch.empty_like(x), x.shape[-1]
        block = triton.next_power_of_2(features)
        warps = min(max(block // 512, 1), 16)
        norm_kernel[(x.numel() // features,)](
            x, residual, self.weight, out, total, features, self.eps, BLOCK=block, num_warps=warps
        )
        return out, total
