import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated_scale_kernel(x, gate, scale, out, elements, features, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < elements
    values = tl.load(x + at, mask=inside, other=0.0)
    gates = tl.load(gate + at, mask=inside, other=0.0)
    scales = tl.load(scale + at % features, mask=inside, other=0.0)
    tl.store(out + at, values * scales * tl.sigmoid(gates), mask=inside)


def gated_scale(x, gate, scale):
    x, gate, scale = x.contiguous(), gate.contiguous(), scale.contiguous()
    out = torch.empty_like(x)
    elements, block = x.numel(), 1024
    if elements:
        grid = (triton.cdiv(elements, block),)
        gated_scale_kernel[grid](x, gate, scale, out, elements, x.shape[-1], BLOCK=block, num_warps=4)
    return out


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x, gate):
        return gated_scale(x, gate, self.scale)
