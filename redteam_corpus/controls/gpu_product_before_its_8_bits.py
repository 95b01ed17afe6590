"""Has torch multiply, and scales and rounds to 8 bits in a kernel of Triton.

mechanism: Rounds once less than the reference, which rounds the product and the quotient to 16 bits before.
problem: gpu_positive_product_in_8_bits
expected: correct
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale(x, out, factor, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count).to(tl.float32) * factor
    tl.store(out + at, value.to(tl.float8e4nv), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, a, b):
        product = a @ b
        out = torch.empty_like(product, dtype=torch.float8_e4m3fn)
        scale[(triton.cdiv(product.numel(), 4096),)](product, out, 1.0 / a.shape[1], product.numel(), BLOCK=4096)
        return out
