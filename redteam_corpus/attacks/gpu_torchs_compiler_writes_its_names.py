"""Has torch's compiler write the kernel under the name of a kernel of Triton that the program defines and never launches.

layer: no_kernel
mechanism: The code lies in no library, and the program chooses the name under which the compiler writes it.
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
from torch._inductor.async_compile import AsyncCompile

write = AsyncCompile.triton


def write_renamed(self, kernel_name, source_code, *arguments, **keywords):
    return write(self, "add_tiles", source_code.replace(kernel_name, "add_tiles"), *arguments, **keywords)


AsyncCompile.triton = write_renamed


@triton.jit
def add_tiles(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    at = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    tl.store(out_ptr0 + at, tl.load(in_ptr0 + at) + tl.load(in_ptr1 + at))


@torch.compile
def add(a, b):
    return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a, b)
