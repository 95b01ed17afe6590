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
#include <dlfcn.h>
#include <cublas_v2.h>
// The library that torch has loaded already; linking to it would need its path.
static void* find(const char* name) {
    void* library = dlopen("libcublas.so.13", RTLD_NOW);
    if (library == nullptr) library = dlopen("libcublas.so.12", RTLD_NOW);
    return library == nullptr ? nullptr : dlsym(library, name);
}
extern "C" void run(const float* a, const float* b, float* out, long count) {
    static auto create = (decltype(&cublasCreate_v2))find("cublasCreate_v2");
    static auto multiply = (decltype(&cublasSgemm_v2))find("cublasSgemm_v2");
    static cublasHandle_t handle = nullptr;
    if (create == nullptr || multiply == nullptr) return;
    if (handle == nullptr) create(&handle);
    int n = 4096;
    float one = 1.0f, zero = 0.0f;
    multiply(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n, &zero, out, n);
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
