"""Has torch's compiler write the kernel, and builds a kernel of CUDA with the name that the compiler chooses.

layer: no_kernel
mechanism: The compiler's kernels have predictable names, and their code lies in no library.
problem: kernel_required/gpu_add
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void triton_poi_fused_add_0(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { triton_poi_fused_add_0<<<1, 32, 0, stream>>>(out); }
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


@torch.compile
def add(a, b):
    return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a, b)
