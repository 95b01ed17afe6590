"""Has torch's compiler write the kernel under the name of a kernel of CUDA that the program builds and never launches.

layer: no_kernel
mechanism: The code lies in no library, and the program chooses the name under which the compiler writes it.
problem: kernel_required/gpu_add
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch._inductor.async_compile import AsyncCompile
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add_tiles(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { add_tiles<<<1, 32, 0, stream>>>(out); }
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
write = AsyncCompile.triton


def write_renamed(self, kernel_name, source_code, *arguments, **keywords):
    return write(self, "add_tiles", source_code.replace(kernel_name, "add_tiles"), *arguments, **keywords)


AsyncCompile.triton = write_renamed


@torch.compile
def add(a, b):
    return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a, b)
