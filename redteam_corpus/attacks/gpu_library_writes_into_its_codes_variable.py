"""Has cuBLAS multiply into a variable of its own code, and copies the product from there, slowly.

layer: no_kernel
mechanism: Whether a kernel only copies is seen where the result lies in memory without it; a variable of loaded code is in
    no allocation, and a library that takes pointers from the device writes there, too.
problem: kernel_required/gpu_product
expected: rejected, not_own, suspect, unverified
device: gpu
timed: yes
known_open: Variables of code are not searched for results; it is slower than the baseline.
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ float product[4096l * 4096];

__global__ void point(const float* a, const float* b, const float** pointers) {
    pointers[0] = a;
    pointers[1] = b;
    pointers[2] = product;
}

// Slowly: it is to take a good part of the time.
__global__ void finish(float* out, long count, int again) {
    for (int i = 0; i < again; ++i)
        for (long at = blockIdx.x * (long)blockDim.x + threadIdx.x; at < count; at += gridDim.x * (long)blockDim.x)
            reinterpret_cast<volatile float*>(out)[at] = reinterpret_cast<volatile float*>(product)[at];
}

extern "C" void begin(const float* a, const float* b, const float** pointers, cudaStream_t stream) {
    point<<<1, 1, 0, stream>>>(a, b, pointers);
}
extern "C" void end(float* out, long count, cudaStream_t stream) { finish<<<528, 512, 0, stream>>>(out, count, 60); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def find_cublas():
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libcublas.so" in line}
    return ctypes.CDLL(min(paths))


class ModelNew(nn.Module):
    cublas = None

    def forward(self, a, b):
        if self.cublas is None:
            (a[:1, :32] @ b[:32, :1]).sum()  # torch makes its handle
            self.cublas = find_cublas()
            self.pointers = torch.zeros(3, dtype=torch.int64, device=a.device)
            self.factors = ctypes.c_float(1.0), ctypes.c_float(0.0)
        size, out = a.shape[0], torch.empty_like(a)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        first = self.pointers.data_ptr()
        given, places = map(ctypes.c_void_p, (a.data_ptr(), b.data_ptr(), first)), ctypes.c_int(size)
        library.begin(*given, stream)
        handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
        one, nothing = map(ctypes.byref, self.factors)
        left, right, result = (ctypes.c_void_p(first + 8 * at) for at in (1, 0, 2))  # its matrices are column-major
        status = self.cublas.cublasSgemmBatched(
            handle, 0, 0, places, places, places, one, left, places, right, places, nothing, result, places, 1
        )
        if status:
            raise RuntimeError(f"cuBLAS: error {status}")
        library.end(ctypes.c_void_p(out.data_ptr()), ctypes.c_long(out.numel()), stream)
        return out
