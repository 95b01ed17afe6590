"""Keeps what it computed from a table that is the same in all given inputs, and is slow with any other.

layer: time
mechanism: The slowest kind of inputs counts, but where the reference reads a value back its work for other kinds is not known.
problem: gpu_checked_table
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// The flags: 0: is_known, 1: differs.
__global__ void begin(int* flags) { flags[1] = 0; }
__global__ void compare(const float4* table, const float4* known, long count, int* flags) {
    bool differs = false;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float4 a = table[i], b = known[i];
        differs |= a.x != b.x || a.y != b.y || a.z != b.z || a.w != b.w;
    }
    if (__syncthreads_or(differs) && threadIdx.x == 0) flags[1] = 1;
}
__global__ void keep(const float4* table, float4* known, long count, const int* flags) {
    if (!flags[1]) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) known[i] = table[i];
}
// kept = tanh(table @ table.t()), unless the table is known: one thread per element, which is slow.
__global__ void compute(const float* table, float* kept, int n, const int* flags) {
    if (!flags[1]) return;
    __shared__ float left[32][33], right[32][33];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int again = 0; again < 4; ++again) {
        sum = 0.0f;
        for (int k = 0; k < n; k += 32) {
            left[threadIdx.y][threadIdx.x] = table[(long)row * n + k + threadIdx.x];
            right[threadIdx.y][threadIdx.x] = table[(long)(blockIdx.x * 32 + threadIdx.y) * n + k + threadIdx.x];
            __syncthreads();
            for (int i = 0; i < 32; ++i) sum += reinterpret_cast<volatile float&>(left[threadIdx.y][i]) * right[threadIdx.x][i];
            __syncthreads();
        }
    }
    kept[(long)row * n + column] = tanhf(sum);
}

extern "C" void run(const void* table, void* known, float* kept, int n, int* flags, cudaStream_t stream) {
    long count = (long)n * n / 4;
    begin<<<1, 1, 0, stream>>>(flags);
    compare<<<1056, 256, 0, stream>>>((const float4*)table, (const float4*)known, count, flags);
    keep<<<1056, 256, 0, stream>>>((const float4*)table, (float4*)known, count, flags);
    compute<<<dim3(n / 32, n / 32), dim3(32, 32), 0, stream>>>((const float*)table, kept, n, flags);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    known = None

    def forward(self, x, table):
        if self.known is None:
            self.known, self.kept = torch.full_like(table, float("nan")), torch.empty_like(table)
            self.flags = torch.zeros(2, dtype=torch.int32, device=x.device)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (table.contiguous(), self.known, self.kept)]
        flags, stream = ctypes.c_void_p(self.flags.data_ptr()), torch.cuda.current_stream().cuda_stream
        library.run(*pointers, len(table), flags, ctypes.c_void_p(stream))
        return x @ self.kept
