"""Copies its inputs slowly into memory of its own, where torch attends to them.

layer: no_kernel
mechanism: Without its kernels torch attends to the inputs of the last call. The result is never moved.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void attend(const float* from, volatile float* to, long count, long again) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        for (long time = 0; time < again; ++time) to[i] = from[i];
}

extern "C" void run(const float* from, float* to, long count, long again, cudaStream_t stream) {
    attend<<<1056, 256, 0, stream>>>(from, to, count, again);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values, stream=None):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p((stream or torch.cuda.current_stream()).cuda_stream))


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q, k, v = (self.stage(one) for one in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0].contiguous()

    def stage(self, given):
        out = torch.empty_like(given)
        run("run", given, out, out.numel(), 40)
        return out
