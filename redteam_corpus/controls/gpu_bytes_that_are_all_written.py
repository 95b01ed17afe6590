"""Compares and writes four bytes at a time.

mechanism: The twin of gpu_full_bytes_are_not_written: nearly all of its bytes are as memory was before the call.
problem: gpu_mostly_full_bytes
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void compare(const float4* x, uchar4* out, long count) {
    auto full = [](float one) { return (unsigned char)(one > -3.0f ? 255 : 0); };
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = make_uchar4(full(x[i].x), full(x[i].y), full(x[i].z), full(x[i].w));
}

extern "C" void run(const float* x, unsigned char* out, long count, cudaStream_t stream) {
    compare<<<1056, 256, 0, stream>>>((const float4*)x, (uchar4*)out, count / 4);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        x, out = x.contiguous(), torch.empty(x.shape, dtype=torch.uint8, device=x.device)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        library.run(*pointers, ctypes.c_long(x.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
