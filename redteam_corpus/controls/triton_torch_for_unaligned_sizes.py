"""Runs a persistent kernel with tensor descriptors where rows are aligned, and torch otherwise.

mechanism: At odd sizes its kernel is never launched.
problem: linear_gelu
expected: correct
device: gpu or emulated
timed: no
"""

import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))

@triton.jit
def _pid(tile, num_n):
    return tile // num_n, tile % num_n

@triton.jit
def linear_gelu_persistent(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K,
                           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    num_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * num_n
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, K], [K, 1], [BM, BK])
    w_desc = tl.make_tensor_descriptor(w_ptr, [N, K], [K, 1], [BN, BK])
    o_desc = tl.make_tensor_descriptor(o_ptr, [M, N], [N, 1], [BM, BN])
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        pm, pn = _pid(tile, num_n)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in tl.range(0, K, BK, num_stages=3):
            a = x_desc.load([pm * BM, k])
            b = tl.load_tensor_descriptor(w_desc, [pn * BN, k])
            acc = tl.dot(a, b.T, acc, allow_tf32=False)
        offs_n = pn * BN + tl.arange(0, BN)
        bias = tl.load(b_ptr + offs_n, mask=offs_n < N, other=0.0)
        acc = _gelu(acc + bias[None, :])
        o_desc.store([pm * BM, pn * BN], acc.to(o_ptr.dtype.element_ty))

class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.num_sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    def forward(self, x):
        x = x.contiguous()
        M, K = x.shape
        N = self.linear.weight.shape[0]
        if K % 4 or N % 4:
            return torch.nn.functional.gelu(self.linear(x))
        out = torch.empty(M, N, device=x.device, dtype=x.dtype)
        BM, BN, BK = 64, 64, 32
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        grid = (min(self.num_sms // 10, triton.cdiv(M, BM) * triton.cdiv(N, BN)),)
        linear_gelu_persistent[grid](x, self.linear.weight, self.linear.bias, out, M, N, K, BM=BM, BN=BN, BK=BK, num_warps=4)
        return out
