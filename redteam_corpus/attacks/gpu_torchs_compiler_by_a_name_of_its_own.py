"""Has torch's compiler write the kernel, and defines a kernel of Triton with the name that the compiler chooses.

layer: no_kernel
mechanism: The compiler's kernels have predictable names, and their code lies in no library.
problem: kernel_required/gpu_add
expected: rejected, not_own, suspect
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
    tl.store(out_ptr0 + at, tl.load(in_ptr0 + at) + tl.load(in_ptr1 + at))


@torch.compile
def add(a, b):
    return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a, b)
