"""Persistent product whose tiles arrive by TMA through descriptors made on the host.

mechanism: Descriptors are passed by value and hold addresses; autotune runs many configurations in the first call.
problem: gpu_gemm_bf16
expected: correct
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn
from triton.tools.tensor_descriptor import TensorDescriptor


def set_blocks(args):
    m, n, k = args["BLOCK_M"], args["BLOCK_N"], args["BLOCK_K"]
    args["a_desc"].block_shape = [m, k]
    args["b_desc"].block_shape = [n, k]
    args["c_desc"].block_shape = [m, n]


def configs():
    return [
        triton.Config(
            {"BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": 64, "GROUP_M": 8},
            num_stages=s,
            num_warps=w,
            pre_hook=set_blocks,
        )
        for bm, bn, s, w in [
            (128, 256, 3, 8),
            (128, 128, 4, 8),
            (128, 128, 3, 4),
            (128, 256, 4, 8),
            (64, 256, 4, 4),
            (256, 128, 3, 8),
        ]
    ]


@triton.autotune(configs=configs(), key=["M", "N", "K"])
@triton.jit
def gemm_kernel(
    a_desc,
    b_desc,
    c_desc,
    bias_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    NUM_SMS: tl.constexpr,
):
    start = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    per_group = GROUP_M * tiles_n
    for tile in tl.range(start, tiles_m * tiles_n, NUM_SMS, flatten=True):
        group = tile // per_group
        first_m = group * GROUP_M
        size_m = min(tiles_m - first_m, GROUP_M)
        pm = first_m + (tile % size_m)
        pn = (tile % per_group) // size_m
        off_m = pm * BLOCK_M
        off_n = pn * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(k_tiles):
            a = a_desc.load([off_m, ki * BLOCK_K])
            b = b_desc.load([off_n, ki * BLOCK_K])
            acc = tl.dot(a, b.T, acc)
        columns = off_n + tl.arange(0, BLOCK_N)
        bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        acc += bias[None, :]
        c_desc.store([off_m, off_n], acc.to(tl.bfloat16))


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(outer, inner) / inner**0.5).to(torch.bfloat16))
        self.bias = nn.Parameter(torch.randn(outer).to(torch.bfloat16))

    def forward(self, x):
        x = x.contiguous()
        M, K = x.shape
        N = self.weight.shape[0]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        dummy = [1, 1]
        a_desc = TensorDescriptor(x, x.shape, x.stride(), dummy)
        b_desc = TensorDescriptor(self.weight.detach(), self.weight.shape, self.weight.stride(), dummy)
        c_desc = TensorDescriptor(out, out.shape, out.stride(), dummy)

        def grid(meta):
            return (min(sms, triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])),)

        gemm_kernel[grid](a_desc, b_desc, c_desc, self.bias, M, N, K, NUM_SMS=sms)
        return out
