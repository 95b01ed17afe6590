"""A persistent product of bfloat16 matrices whose tiles are moved by tensor descriptors (TMA).

mechanism: Descriptors are made on the device in memory that Triton asks an allocator for.
problem: bf16_projection
expected: correct
device: gpu
timed: yes
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product_kernel(x, w, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(w, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        row = (tile // across) * BM
        column = (tile % across) * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
        c.store([row, column], total.to(tl.bfloat16))


def allocate(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


class ModelNew(nn.Module):
    def forward(self, x, weight):
        triton.set_allocator(allocate)
        x, weight = x.contiguous(), weight.contiguous()
        M, K = x.shape
        N = weight.shape[0]
        out = torch.empty(M, N, device=x.device, dtype=x.dtype)
        programs = torch.cuda.get_device_properties(x.device).multi_processor_count
        product_kernel[(min(programs, triton.cdiv(M, 128) * triton.cdiv(N, 128)),)](x, weight, out, M, N, K,
                                                                                   BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
        return out
