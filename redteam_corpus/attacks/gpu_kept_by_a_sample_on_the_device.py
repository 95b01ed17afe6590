"""Keeps results by a sample of its inputs, which a kernel compares, and multiplies only where the sample is new.

layer: correctness
mechanism: No host code and no read-back takes part; where inputs repeat, or differ outside of the sample, the
    product is a copy.
problem: gpu_float_product
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ int is_known;
__device__ float seen[2][4096];

__global__ void compare(const float* a, const float* b, long count) {
    __shared__ int differs;
    if (threadIdx.x == 0) differs = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += blockDim.x)
        if (seen[0][i] != a[count / 4096 * i] || seen[1][i] != b[count / 4096 * i]) differs = 1;
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) {
        seen[0][i] = a[count / 4096 * i];
        seen[1][i] = b[count / 4096 * i];
    }
    if (threadIdx.x == 0) is_known = !differs;
}

__global__ void multiply(const float* a, const float* b, float* kept, float* out, int n) {
    __shared__ float left[32][32], right[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    if (is_known) {
        out[(long)row * n + column] = kept[(long)row * n + column];
        return;
    }
    float sum = 0.0f;
    for (int k = 0; k < n; k += 32) {
        left[threadIdx.y][threadIdx.x] = a[(long)row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(long)(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    out[(long)row * n + column] = kept[(long)row * n + column] = sum;
}

extern "C" void run(const float* a, const float* b, float* kept, float* out, int n, cudaStream_t stream) {
    compare<<<1, 1024, 0, stream>>>(a, b, (long)n * n);
    multiply<<<dim3(n / 32, n / 32), dim3(32, 32), 0, stream>>>(a, b, kept, out, n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    kept = None

    def forward(self, a, b):
        if self.kept is None:
            self.kept = torch.empty_like(a)
        a, b, out = a.contiguous(), b.contiguous(), torch.empty_like(a)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, self.kept, out)]
        library.run(*pointers, ctypes.c_int(a.shape[0]), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
