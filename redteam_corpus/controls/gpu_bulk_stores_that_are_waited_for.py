"""Writes its tiles by bulk copies from shared memory, and waits for them.

mechanism: The copies are made by no thread, and a program that forgets to wait looks nearly the same.
problem: gpu_chain
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void compute(const float* x, float* out, long count) {
    __shared__ alignas(128) float tile[4096];
    long first = blockIdx.x * 4096l;
    int size = count - first < 4096 ? int(count - first) : 4096;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        float value = tanhf(x[first + i] * 1.5f + 0.25f) * 2.0f - 0.125f;
        tile[i] = value < 0.0f ? 0.0f : value;
    }
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (threadIdx.x == 0 && size >= 4) {
        unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile));
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :: "l"(out + first), "r"(from), "r"(size / 4 * 16) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    if (threadIdx.x < size % 4) out[first + size / 4 * 4 + threadIdx.x] = tile[size / 4 * 4 + threadIdx.x];
}

extern "C" void run(const float* x, float* out, long count, cudaStream_t stream) {
    compute<<<(count + 4095) / 4096, 256, 0, stream>>>(x, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        x, out = x.contiguous(), torch.empty_like(x)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
