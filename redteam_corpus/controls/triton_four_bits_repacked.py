"""Packs eight weights into each integer at its first call, and again when they change.

mechanism: What it computes from is its own buffer, not the weights.
problem: four_bit_weights
expected: correct
device: gpu or emulated
timed: no
"""

import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def w4_kernel(x, qw, sc, out, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, GROUP)
    shifts = (rk % 8) * 4
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for g in range(0, K // GROUP):
        k = g * GROUP + rk
        a = tl.load(x + rm[:, None] * K + k[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(qw + (k // 8)[:, None] * N + rn[None, :], mask=rn[None, :] < N, other=0)
        q = (q >> shifts[:, None]) & 0xF
        s = tl.load(sc + g * N + rn, mask=rn < N, other=0.0)
        w = (q.to(tl.float16) - 8.0) * s[None, :]
        acc += tl.dot(a, w.to(tl.float16))
    tl.store(out + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))

class ModelNew(nn.Module):
    def __init__(self, k, n, group):
        super().__init__()
        g = torch.Generator().manual_seed(7)
        self.register_buffer("packed", torch.randint(0, 256, (k // 2, n), dtype=torch.uint8, generator=g))
        self.register_buffer("scales", torch.rand(k // group, n, generator=g).half() * 0.02 + 0.01)
        self.group = group
        self._qw = None
        self._key = None
    def _pack(self):
        key = (self.packed.data_ptr(), self.packed._version, self.packed.device)
        if self._key != key:
            p = self.packed.to(torch.int32).view(-1, 4, self.packed.shape[1])
            sh = torch.tensor([0, 8, 16, 24], device=p.device, dtype=torch.int32).view(1, 4, 1)
            self._qw = (p << sh).sum(1).to(torch.int32).contiguous()
            self._key = key
        return self._qw
    def forward(self, x):
        M, K = x.shape
        qw = self._pack()
        N = qw.shape[1]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        w4_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 32))](x, qw, self.scales, out, M, N, K, GROUP=self.group, BM=16, BN=32)
        return out
