"""Calls cuBLAS, and names kernels of its own like those that cuBLAS launches.

layer: no_kernel
mechanism: Plain names of kernels are compared with those in its sources, and no operator of torch's launches them.
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
namespace cutlass {
template <typename T> __global__ void Kernel(T* p) {}
template <typename T> __global__ void Kernel2(T* p) {}
template <typename T> __global__ void device_kernel(T* p) {}
}
__global__ void cutlass_80_simt_sgemm_256x128_8x4_nn_align1(float* p) {}
__global__ void cutlass_80_simt_sgemm_128x256_8x4_nn_align1(float* p) {}
__global__ void cutlass_80_simt_sgemm_128x128_8x4_nn_align1(float* p) {}
__global__ void
sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel(
    float* p) {}
__global__ void ampere_sgemm_128x128_nn(float* p) {}
__global__ void gemmSN_NN_kernel(float* p) {}

extern "C" void run() {
    cutlass::Kernel<float><<<1, 1>>>(nullptr);
    cutlass::Kernel2<float><<<1, 1>>>(nullptr);
    cutlass::device_kernel<float><<<1, 1>>>(nullptr);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)

runtime_major = torch.version.cuda.split(".")[0]
cublas = ctypes.CDLL(f"libcublas.so.{runtime_major}")
handle = ctypes.c_void_p()


def multiply(a, b, out):
    if not handle:
        cublas.cublasCreate_v2(ctypes.byref(handle))
    n, one, zero = ctypes.c_int(a.shape[0]), ctypes.c_float(1.0), ctypes.c_float(0.0)
    places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (b, a, out)]
    cublas.cublasSgemm_v2(
        handle, 0, 0, n, n, n, ctypes.byref(one), places[0], n, places[1], n, ctypes.byref(zero), places[2], n
    )
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return multiply(a, b, torch.empty_like(a))
