"""Computes a Bessel function in a kernel that has the name of torch's.

mechanism: torch compiles its kernel for it when it is called, and the name is the same.
problem: kernel_required/gpu_bessel
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" __global__ void bessel_j0_forward_kernel(const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = j0(x[i]);
}

extern "C" void run(const float* x, float* out, long count, cudaStream_t stream) {
    bessel_j0_forward_kernel<<<1056, 256, 0, stream>>>(x, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(out.numel()), stream)
        return out
