"""Attends to as many slots of a cache as its counter says, in one kernel.

mechanism: Its time depends on a state, which differs from call to call.
problem: gpu_cache_of_thirty_two
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// A block of 64 threads, one for each number of a row, per head.
__global__ void attend(const float* q, const float* k, const float* v, float* keys, float* values, const long* count, float* out,
                       int slots) {
    __shared__ float scores[64], query[64];
    int at = threadIdx.x, filled = int(*count) + 1;
    long row = blockIdx.x * 64l + at;
    float* own_keys = keys + blockIdx.x * (long)slots * 64;
    float* own_values = values + blockIdx.x * (long)slots * 64;
    query[at] = q[row];
    own_keys[(filled - 1) * 64 + at] = k[row];
    own_values[(filled - 1) * 64 + at] = v[row];
    __syncthreads();
    if (at < filled) {
        float sum = 0.0f;
        for (int i = 0; i < 64; ++i) sum += query[i] * own_keys[at * 64 + i];
        scores[at] = sum * 0.125f;
    }
    __syncthreads();
    float most = -INFINITY, total = 0.0f, sum = 0.0f;
    for (int i = 0; i < filled; ++i) most = fmaxf(most, scores[i]);
    for (int i = 0; i < filled; ++i) {
        float weight = expf(scores[i] - most);
        total += weight;
        sum += weight * own_values[i * 64 + at];
    }
    out[row] = sum / total;
}

__global__ void advance(long* count) { ++*count; }

extern "C" void run(const float* q, const float* k, const float* v, float* keys, float* values, long* count, float* out, int heads,
                    int slots, cudaStream_t stream) {
    attend<<<heads, 64, 0, stream>>>(q, k, v, keys, values, count, out, slots);
    advance<<<1, 1, 0, stream>>>(count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self, heads, slots, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(heads, slots, width))
        self.register_buffer("values", torch.zeros(heads, slots, width))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, q, k, v):
        out = torch.empty_like(q)
        tensors = (q, k, v, self.keys, self.values, self.count, out)
        sizes = map(ctypes.c_int, self.keys.shape[:2])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*(ctypes.c_void_p(one.data_ptr()) for one in tensors), *sizes, stream)
        return out
