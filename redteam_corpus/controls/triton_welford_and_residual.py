"""Adds a residual, and combines means and deviations of parts of a row.

mechanism: A function of the candidate's reduces three values at once; the sum is read again from where it came.
problem: norm_of_a_sum
expected: correct
device: gpu or emulated
timed: no
"""

import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def welford_combine(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    d = m2 - m1
    r = tl.where(n == 0.0, 0.0, n2 / n)
    return m1 + d * r, s1 + s2 + d * d * n1 * r, n

@triton.jit
def ln_res_kernel(X, R, W, B, Y, S, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean = tl.zeros([BLOCK], tl.float32)
    m2 = tl.zeros([BLOCK], tl.float32)
    cnt = tl.zeros([BLOCK], tl.float32)
    for off in range(0, N, BLOCK):
        c = off + tl.arange(0, BLOCK)
        m = c < N
        x = tl.load(X + row * stride + c, mask=m, other=0.).to(tl.float32) + tl.load(R + row * stride + c, mask=m, other=0.).to(tl.float32)
        tl.store(S + row * stride + c, x, mask=m)
        cnt_new = cnt + m.to(tl.float32)
        delta = x - mean
        new_mean = tl.where(m, mean + delta / tl.maximum(cnt_new, 1.0), mean)
        m2 = tl.where(m, m2 + delta * (x - new_mean), m2)
        mean = new_mean
        cnt = cnt_new
    mu, ss, n = tl.reduce((mean, m2, cnt), 0, welford_combine)
    rstd = tl.rsqrt(ss / n + eps)
    for off in range(0, N, BLOCK):
        c = off + tl.arange(0, BLOCK)
        m = c < N
        x = tl.load(X + row * stride + c, mask=m, other=0.).to(tl.float32) + tl.load(R + row * stride + c, mask=m, other=0.).to(tl.float32)
        w = tl.load(W + c, mask=m)
        b = tl.load(B + c, mask=m)
        tl.store(Y + row * stride + c, (x - mu) * rstd * w + b, mask=m)

class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
    def forward(self, x, residual):
        y = torch.empty_like(x)
        s = torch.empty_like(x)
        x2 = x.view(-1, x.shape[-1])
        ln_res_kernel[(x2.shape[0],)](x, residual, self.ln.weight, self.ln.bias, y, s, x2.stride(0), x2.shape[1], self.ln.eps, BLOCK=128)
        return y, s
