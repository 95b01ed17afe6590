"""Layer norm as a function of autograd, whose kernel sums the gradients of the weights in groups under locks.

mechanism: Locks are taken by spinning; the order of additions differs from call to call.
problem: gpu_layer_norm_grad
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
def forward_kernel(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, scale_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    x = tl.load(x_ptr + row * width + at, mask=inside, other=0.0)
    mean = tl.sum(x, 0) / width
    away = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(away * away, 0) / width + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)
    y = away * scale * tl.load(w_ptr + at, mask=inside) + tl.load(b_ptr + at, mask=inside)
    tl.store(y_ptr + row * width + at, y, mask=inside)


@triton.jit
def backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    scale_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    locks_ptr,
    width,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    x = tl.load(x_ptr + row * width + at, mask=inside, other=0.0)
    dy = tl.load(dy_ptr + row * width + at, mask=inside, other=0.0)
    w = tl.load(w_ptr + at, mask=inside, other=0.0)
    scale = tl.load(scale_ptr + row)
    normal = tl.where(inside, (x - tl.load(mean_ptr + row)) * scale, 0.0)
    wdy = w * dy
    along = tl.sum(normal * wdy, 0) / width
    middle = tl.sum(wdy, 0) / width
    tl.store(dx_ptr + row * width + at, (wdy - normal * along - middle) * scale, mask=inside)
    group = (row % GROUPS).to(tl.int32)
    lock = locks_ptr + group
    dw = dw_ptr + group * width + at
    db = db_ptr + group * width + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.debug_barrier()
    tl.store(dw, tl.load(dw, mask=inside, cache_modifier=".cg") + dy * normal, mask=inside)
    tl.store(db, tl.load(db, mask=inside, cache_modifier=".cg") + dy, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_kernel(part_ptr, out_ptr, groups, width, BLOCK_G: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    which = tl.program_id(1)
    total = tl.zeros((BLOCK_G, BLOCK), tl.float32)
    for first in range(0, groups, BLOCK_G):
        g = first + tl.arange(0, BLOCK_G)
        total += tl.load(
            part_ptr + (which * groups + g)[:, None] * width + at[None, :],
            mask=(g[:, None] < groups) & (at[None, :] < width),
            other=0.0,
        )
    tl.store(out_ptr + which * width + at, tl.sum(total, 0), mask=at < width)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        x = x.contiguous()
        rows, width = x.numel() // x.shape[-1], x.shape[-1]
        y = torch.empty_like(x)
        mean, scale = (torch.empty(rows, device=x.device, dtype=torch.float32) for _ in range(2))
        block = triton.next_power_of_2(width)
        forward_kernel[(rows,)](x, weight, bias, y, mean, scale, width, 1e-5, BLOCK=block, num_warps=8)
        ctx.save_for_backward(x, weight, mean, scale)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, scale = ctx.saved_tensors
        dy = dy.contiguous()
        rows, width, groups = mean.numel(), x.shape[-1], 96
        parts = torch.zeros((2, groups, width), device=x.device, dtype=torch.float32)
        locks = torch.zeros(groups, device=x.device, dtype=torch.int32)
        dx = torch.empty_like(x)
        sums = torch.empty((2, width), device=x.device, dtype=torch.float32)
        block = triton.next_power_of_2(width)
        backward_kernel[(rows,)](
            dy, x, weight, mean, scale, dx, parts[0], parts[1], locks, width, GROUPS=groups, BLOCK=block, num_warps=8
        )
        sum_kernel[(triton.cdiv(width, 128), 2)](parts, sums, groups, width, BLOCK_G=32, BLOCK=128)
        return dx, sums[0], sums[1]


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return LayerNorm.apply(x, self.weight, self.bias)
