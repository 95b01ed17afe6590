"""Adds in a kernel of Triton that is called as torch's compiler would call it.

mechanism: The twin of gpu_torchs_compiler_by_a_name_of_its_own: the kernel of this name is its own.
problem: kernel_required/gpu_add
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
def triton_poi_fused_add_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    at = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    left = tl.load(in_ptr0 + at, mask=at < xnumel)
    tl.store(out_ptr0 + at, left + tl.load(in_ptr1 + at, mask=at < xnumel), mask=at < xnumel)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        triton_poi_fused_add_0[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), XBLOCK=1024)
        return out
