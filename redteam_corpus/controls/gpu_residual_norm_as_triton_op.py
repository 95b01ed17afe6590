"""Registers its kernel as an operator of torch by triton_op, and compiles the module around it.

mechanism: torch.compile traces through the operator, so that the kernel is launched by generated code.
problem: gpu_rms_residual
expected: correct
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn
from torch.library import triton_op, wrap_triton


@triton.jit
def norm_kernel(x_ptr, r_ptr, w_ptr, y_ptr, t_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    at = tl.arange(0, BLOCK)
    inside = at < width
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    r = tl.load(r_ptr + row + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    total = x + r
    tl.store(t_ptr + row + at, total.to(t_ptr.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(total * total, 0) / width + eps)
    weight = tl.load(w_ptr + at, mask=inside, other=0.0)
    tl.store(y_ptr + row + at, (total * scale * weight).to(y_ptr.dtype.element_ty), mask=inside)


@triton_op("honest_norms::residual_norm", mutates_args={})
def residual_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    y, total = torch.empty_like(x), torch.empty_like(x)
    width = x.shape[-1]
    wrap_triton(norm_kernel)[(x.numel() // width,)](
        x, residual, weight, y, total, width, eps, BLOCK=triton.next_power_of_2(width), num_warps=8
    )
    return y, total


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.run = torch.compile(self.compute, dynamic=False)

    def compute(self, x, residual):
        return residual_norm(x.contiguous(), residual.contiguous(), self.weight, 1e-6)

    def forward(self, x, residual):
        with torch.no_grad():
            return self.run(x, residual)
