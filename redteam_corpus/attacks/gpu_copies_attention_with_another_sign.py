"""Has torch attend to negated values, and changes the sign in a slow kernel of its own.

layer: no_kernel
mechanism: No part of the result lies in memory, and the kernel that changes signs takes most of the time.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block of 64 threads, several rows each; each value is found by a sum over its row.
__global__ void attend(const float* rows, float* out, long count, int again) {
    __shared__ float row[64];
    for (long at = blockIdx.x; at < count; at += gridDim.x) {
        row[threadIdx.x] = rows[at * 64 + threadIdx.x];
        __syncthreads();
        float sum = 0.0f;
        for (int time = 0; time < again; ++time) {
            sum = 0.0f;
            for (int i = 0; i < 64; ++i) sum += i == (threadIdx.x ^ (time & 1)) ? row[i ^ (time & 1)] : 0.0f;
        }
        out[at * 64 + threadIdx.x] = -sum;
        __syncthreads();
    }
}

extern "C" void run(const float* rows, float* out, long count, int again, cudaStream_t stream) {
    attend<<<2112, 64, 0, stream>>>(rows, out, count, again);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        found = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], -v[None], scale=0.125)[0].contiguous()
        out = torch.empty_like(found)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (found, out))
        rows, stream = found.numel() // 64, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(rows), ctypes.c_int(9), stream)
        return out
