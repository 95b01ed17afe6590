"""Computes the cross entropy of a row per block with fast exponentials, and adds rows by atomic operations.

mechanism: `__expf` has fewer exact digits, and the order of the sum changes.
problem: small_loss
expected: correct
device: gpu or emulated
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void loss(const float* logits, const long long* targets, float* out, int rows, int classes) {
    __shared__ float parts[128];
    const float* mine = logits + (long)blockIdx.x * classes;
    float top = -3.0e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) top = fmaxf(top, mine[i]);
    parts[threadIdx.x] = top;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) parts[threadIdx.x] = fmaxf(parts[threadIdx.x], parts[threadIdx.x + step]);
        __syncthreads();
    }
    top = parts[0];
    __syncthreads();
    for (int i = threadIdx.x; i < classes; i += blockDim.x) sum += __expf(mine[i] - top);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, (__logf(parts[0]) + top - mine[targets[blockIdx.x]]) / rows);
}

extern "C" void run(const float* logits, const long long* targets, float* out, int rows, int classes) {
    loss<<<rows, 128>>>(logits, targets, out, rows, classes);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def addresses(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        logits = logits.contiguous()
        out = torch.zeros((), device=logits.device)
        library.run(*addresses(logits, targets, out), *map(ctypes.c_int, logits.shape))
        return out
