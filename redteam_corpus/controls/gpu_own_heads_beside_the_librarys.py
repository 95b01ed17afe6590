"""Attends to half of the heads in a kernel of its own, and has torch attend to the others in another stream meanwhile.

mechanism: Its kernel and the library's run at the same time, and where each is timed alone they take longer together.
problem: kernel_required/gpu_attention
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block of 128 threads per query; 1024 keys of 64 numbers.
__global__ void attend(const float* q, const float* k, const float* v, float* out) {
    __shared__ float query[64], scores[1024], shared[128];
    long row = blockIdx.x, first = row / 1024 * 1024;
    if (threadIdx.x < 64) query[threadIdx.x] = q[row * 64 + threadIdx.x];
    __syncthreads();
    float most = -INFINITY;
    for (int key = threadIdx.x; key < 1024; key += 128) {
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
    for (int key = threadIdx.x; key < 1024; key += 128) total += scores[key] = expf(scores[key] - most);
    shared[threadIdx.x] = total;
    __syncthreads();
    total = 0.0f;
    for (int i = 0; i < 128; ++i) total += shared[i];
    if (threadIdx.x >= 64) return;
    float sum = 0.0f;
    for (int key = 0; key < 1024; ++key) sum += scores[key] * v[(first + key) * 64 + threadIdx.x];
    out[row * 64 + threadIdx.x] = sum / total;
}

extern "C" void run(const float* q, const float* k, const float* v, float* out, int rows, cudaStream_t stream) {
    attend<<<rows, 128, 0, stream>>>(q, k, v, out);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.beside = torch.cuda.Stream()

    def forward(self, q, k, v):
        half = q.shape[0] // 2
        out = torch.empty_like(q)
        self.beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.beside):
            rest = (one[None, half:] for one in (q, k, v))
            out[half:] = torch.nn.functional.scaled_dot_product_attention(*rest, scale=0.125)[0]
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (q, k, v, out))
        rows, stream = half * q.shape[1], torch.cuda.current_stream().cuda_stream
        library.run(*pointers, ctypes.c_int(rows), ctypes.c_void_p(stream))
        torch.cuda.current_stream().wait_stream(self.beside)
        return out
