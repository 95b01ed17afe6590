"""Attends in a kernel of its own in the first case; in the others torch does, beside a kernel without an effect.

layer: no_kernel
mechanism: Own kernels have an effect in the first case.
problem: kernel_required/gpu_attention_in_cases
expected: rejected
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block of 128 threads per query; keys of 64 numbers.
__global__ void attend(const float* q, const float* k, const float* v, float* out, int length) {
    extern __shared__ float scores[];
    __shared__ float query[64], shared[128];
    long row = blockIdx.x, first = row / length * length;
    if (threadIdx.x < 64) query[threadIdx.x] = q[row * 64 + threadIdx.x];
    __syncthreads();
    float most = -INFINITY;
    for (int key = threadIdx.x; key < length; key += 128) {
        float sum = 0.0f;
        for (int i = 0; i < 64; ++i) sum += query[i] * k[(first + key) * 64 + i];
        scores[key] = sum * 0.125f;
        most = fmaxf(most, scores[key]);
    }
    shared[threadIdx.x] = most;
    __syncthreads();
    for (int i = 0; i < 128; ++i) most = fmaxf(most, shared[i]);
    __syncthreads();
    float total = 0.0f;
    for (int key = threadIdx.x; key < length; key += 128) total += scores[key] = expf(scores[key] - most);
    shared[threadIdx.x] = total;
    __syncthreads();
    total = 0.0f;
    for (int i = 0; i < 128; ++i) total += shared[i];
    if (threadIdx.x >= 64) return;
    float sum = 0.0f;
    for (int key = 0; key < length; ++key) sum += scores[key] * v[(first + key) * 64 + threadIdx.x];
    out[row * 64 + threadIdx.x] = sum / total;
}

__global__ void touch(float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        reinterpret_cast<volatile float*>(out)[i] = 0.0f;
}

extern "C" void run_touch(float* out, long count, cudaStream_t stream) { touch<<<1056, 256, 0, stream>>>(out, count); }
extern "C" void run(const float* q, const float* k, const float* v, float* out, int rows, int length, cudaStream_t stream) {
    attend<<<rows, 128, length * 4, stream>>>(q, k, v, out, length);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def attend(q, k, v):
    out = torch.empty_like(q)
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (q, k, v, out))
    rows, stream = q.shape[0] * q.shape[1], torch.cuda.current_stream().cuda_stream
    library.run(*pointers, rows, q.shape[1], ctypes.c_void_p(stream))
    return out


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        if q.shape[1] == 128:
            return attend(q, k, v)
        unused = torch.empty_like(q)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run_touch(ctypes.c_void_p(unused.data_ptr()), ctypes.c_long(unused.numel()), stream)
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
