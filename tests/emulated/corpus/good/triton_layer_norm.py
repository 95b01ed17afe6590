"""Mean and variance of a row, with weights.

forward: torch.nn.functional.layer_norm(x, (x.shape[1],), w, b)
inputs: x=torch.randn(40, 100), w=torch.randn(100), b=torch.randn(100)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def layer_norm(x, w, b, out, columns, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(inside, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    weight, bias = tl.load(w + at, mask=inside), tl.load(b + at, mask=inside)
    tl.store(out + row * columns + at, centred * scale * weight + bias, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, w, b):
        out = torch.empty_like(x)
        layer_norm[(x.shape[0],)](x, w, b, out, x.shape[1], 1e-5, BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
