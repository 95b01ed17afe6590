"""Marks numbers, and writes every mark.

mechanism: The twin of gpu_minus_ones_are_not_written: it reads as much and writes the whole output.
problem: gpu_rare_marks
expected: correct, faster than 1.5
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void mark(const float4* x, longlong2* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float4 four = x[i];
        auto sign = [](float one) { return fabsf(one) > 3.0f ? (long long)(one > 0.0f) : -1ll; };
        out[2 * i] = make_longlong2(sign(four.x), sign(four.y));
        out[2 * i + 1] = make_longlong2(sign(four.z), sign(four.w));
    }
}

extern "C" void run(const float* x, long long* out, long count, cudaStream_t stream) {
    mark<<<1056, 256, 0, stream>>>((const float4*)x, (longlong2*)out, count / 4);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        x, out = x.contiguous(), torch.empty(x.shape, dtype=torch.int64, device=x.device)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        library.run(*pointers, ctypes.c_long(x.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
