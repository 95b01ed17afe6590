"""Has torch compute a Bessel function, whose kernel torch compiles when it is called, and builds a kernel of that name.

layer: no_kernel
mechanism: The code lies in no library, and a program that has the kernel's plain name in its source may have compiled it.
problem: kernel_required/gpu_bessel
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" __global__ void bessel_j0_forward_vectorized4_kernel(float* out) { out[threadIdx.x] = 0.0f; }
extern "C" __global__ void bessel_j0_forward_vectorized8_kernel(float* out) { out[threadIdx.x] = 0.0f; }
extern "C" __global__ void bessel_j0_forward_vectorized2_kernel(float* out) { out[threadIdx.x] = 0.0f; }
extern "C" __global__ void bessel_j0_forward_kernel(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) {
    bessel_j0_forward_vectorized4_kernel<<<1, 32, 0, stream>>>(out);
    bessel_j0_forward_vectorized8_kernel<<<1, 32, 0, stream>>>(out);
    bessel_j0_forward_vectorized2_kernel<<<1, 32, 0, stream>>>(out);
    bessel_j0_forward_kernel<<<1, 32, 0, stream>>>(out);
}
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)
