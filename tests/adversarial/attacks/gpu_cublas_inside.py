"""Calls cuBLAS from inside its library.

layer: no_kernel
mechanism: The vendor's kernel does the work, behind a function of the candidate's own.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cublas_v2.h>
extern "C" void run(const float* a, const float* b, float* out, long count) {
    static cublasHandle_t handle = nullptr;
    if (handle == nullptr) cublasCreate(&handle);
    int n = 4096;
    float one = 1.0f, zero = 0.0f;
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n, &zero, out, n);
}
"""
library = ctypes.CDLL(
    load_inline(
        name="kernels",
        cpp_sources="",
        cuda_sources=SOURCE,
        no_implicit_headers=True,
        is_python_module=False,
    )
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
