"""One program per row, which stays in registers."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def layer_norm_kernel(x, weight, bias, out, features, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * features
    at = tl.arange(0, BLOCK)
    inside = at < features
    values = tl.load(x + row + at, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, axis=0) / features, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / features + eps)
    factors = tl.load(weight + at, mask=inside, other=0.0)
    result = centred * scale * factors + tl.load(bias + at, mask=inside, other=0.0)
    tl.store(out + row + at, result, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x.contiguous()
        out, features = torch.empty_like(x), x.shape[-1]
        block = triton.next_power_of_2(features)
        layer_norm_kernel[(x.numel() // features,)](
            x,
            self.norm.weight,
            self.norm.bias,
            out,
            features,
            self.norm.eps,
            BLOCK=block,
            num_warps=min(max(block // 512, 1), 16),
        )
        return out
