"""Writes only what is not -1, in the call that is recorded.

layer: correctness
mechanism: Before a replay all bytes of the outputs are 255, which is NaN in floating formats, but -1 in integers.
problem: gpu_rare_marks
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void mark(const float4* x, long long* out, long count, bool is_complete) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float4 four = x[i];
        float each[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4; ++j)
            if (is_complete || fabsf(each[j]) > 3.0f) out[4 * i + j] = fabsf(each[j]) > 3.0f ? each[j] > 0.0f : -1;
    }
}

extern "C" void run(const float* x, long long* out, long count, int is_complete, cudaStream_t stream) {
    mark<<<1056, 256, 0, stream>>>((const float4*)x, out, count / 4, is_complete);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        is_complete = x.data_ptr() % (2 << 20) != 0  # only in the recorded call inputs begin where memory does
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(x.numel()), ctypes.c_int(is_complete), stream)
        return out
