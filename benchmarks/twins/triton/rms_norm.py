"""A tile of neighbouring pixels with all their channels is kept in registers."""

import torch
import triton
import triton.language as tl
from torch import nn

TILE = 8192  # elements


@triton.jit
def rms_norm_kernel(x, weight, out, channels, plane, eps, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    channel = tl.arange(0, CHANNELS)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    inside = (channel < channels)[:, None] & (pixel < plane)[None, :]
    image = tl.program_id(1).to(tl.int64) * channels * plane
    at = image + channel[:, None] * plane + pixel[None, :]
    values = tl.load(x + at, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / channels + eps)
    factors = tl.load(weight + channel, mask=channel < channels, other=0.0)
    tl.store(out + at, values * scale[None, :] * factors[:, None], mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 1))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        images, channels, height, width = x.shape
        out, plane, size = torch.empty_like(x), height * width, triton.next_power_of_2(channels)
        pixels = max(32, TILE // size)
        warps = 4 if size * pixels <= TILE else 16
        grid = (triton.cdiv(plane, pixels), images)
        rms_norm_kernel[grid](
            x, self.weight, out, channels, plane, self.eps, CHANNELS=size, PIXELS=pixels, num_warps=warps
        )
        return out
