"""Adds up in double precision, block by block; the block that ends last divides.

mechanism: Its result is more exact than the reference's, its order of sums varies, and a counter stays between calls.
problem: gpu_mean
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void mean(const float* x, long count, double* parts, unsigned* done, float* out) {
    __shared__ double sums[8];
    __shared__ bool is_last;
    double sum = 0.0;
    for (long i = (blockIdx.x * (long)blockDim.x + threadIdx.x); i < count / 4; i += gridDim.x * (long)blockDim.x) {
        float4 v = ((const float4*)x)[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    if (blockIdx.x == 0 && threadIdx.x < count % 4) sum += x[count / 4 * 4 + threadIdx.x];
    for (int round = 0; round < 2; round++) {
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            double total = 0.0;
            for (int warp = 0; warp < 8; warp++) total += sums[warp];
            if (round == 0) {
                parts[blockIdx.x] = total;
                __threadfence();
                is_last = atomicAdd(done, 1) == gridDim.x - 1;
            } else {
                *out = (float)(total / count);
                *done = 0;
            }
        }
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        sum = 0.0;
        for (int part = threadIdx.x; part < gridDim.x; part += blockDim.x) sum += ((volatile double*)parts)[part];
    }
}

extern "C" void run(const float* x, long count, double* parts, unsigned* done, float* out, cudaStream_t stream) {
    mean<<<1056, 256, 0, stream>>>(x, count, parts, done, out);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.zeros(1056, dtype=torch.float64, device="cuda")
        self.done = torch.zeros(1, dtype=torch.int32, device="cuda")

    def forward(self, x):
        out = torch.empty((), device=x.device)
        x_at, parts_at, done_at, out_at = (
            ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, self.parts, self.done, out)
        )
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(x_at, ctypes.c_long(x.numel()), parts_at, done_at, out_at, stream)
        return out
