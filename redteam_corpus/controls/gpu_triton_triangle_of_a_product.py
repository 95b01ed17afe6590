"""Has cuBLAS multiply, and clears the upper triangle in a kernel of Triton.

mechanism: Half of the elements are the library's as they are, which a comparison of samples may take for a copy.
problem: kernel_required/gpu_triangle_of_product
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
def keep_lower(product, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    values = tl.load(product + row * columns + at, mask=at < columns)
    tl.store(out + row * columns + at, tl.where(at <= row, values, 0.0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, a, b):
        product = a @ b
        out = torch.empty_like(product)
        rows, columns = out.shape
        keep_lower[(rows,)](product, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
