"""Has torch add the rows, and adds these sums in a kernel of its own.

mechanism: The result is one number, of which it is hard to tell where it comes from.
problem: gpu_total
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* sums, float* out, long count) {
    __shared__ double shared[1024];
    double sum = 0.0;
    for (long i = threadIdx.x; i < count; i += 1024) sum += sums[i];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 512; half; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = shared[0];
}

extern "C" void run(const float* sums, float* out, long count, cudaStream_t stream) {
    add<<<1, 1024, 0, stream>>>(sums, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(function, tensors, *numbers):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    function(*pointers, *map(ctypes.c_long, numbers), stream)


class ModelNew(nn.Module):
    def forward(self, x):
        sums, out = x.sum(1), torch.empty((), device=x.device)
        run(library.run, (sums, out), sums.numel())
        return out
