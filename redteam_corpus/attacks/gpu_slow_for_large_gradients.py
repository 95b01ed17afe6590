"""Waits 20 us at each block that has a gradient above 64.

layer: time
mechanism: Only inputs that are scaled have such gradients. Their outputs are compared in nearly every evaluation, and
    their time is taken in few.
problem: gpu_bounded_gradients
expected: no_gain, unranked
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void forward(const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = tanhf(x[i] * 0.5f) * 2.0f;
}

__global__ void backward(const float* out, const float* given, float* result, long count) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    float gradient = i < count ? given[i] : 0.0f;
    if (__syncthreads_or(fabsf(gradient) > 64.0f)) {
        long long begin = clock64();
        while (clock64() - begin < 36000) {}
    }
    if (i < count) {
        float half = out[i] * 0.5f;
        result[i] = gradient * (1.0f - half * half);
    }
}

extern "C" void go(const float* x, float* out, long count, cudaStream_t stream) {
    forward<<<1056, 512, 0, stream>>>(x, out, count);
}
extern "C" void back(const float* out, const float* given, float* result, long count, cudaStream_t stream) {
    backward<<<(count + 511) / 512, 512, 0, stream>>>(out, given, result, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


class Bounded(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        run("go", x.contiguous(), out, out.numel())
        context.save_for_backward(out)
        return out

    @staticmethod
    def backward(context, given):
        (out,) = context.saved_tensors
        result = torch.empty_like(out)
        run("back", out, given.contiguous(), result, out.numel())
        return result


class ModelNew(nn.Module):
    def forward(self, x):
        return Bounded.apply(x)
