"""Returns its state itself, where a copy is asked for, in the call that is recorded.

layer: correctness
mechanism: The next call changes what the last one returned; a replay is looked at before the next one.
problem: gpu_average_returned
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void update(float* average, const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float value = average[i] * 0.9f + x[i] * 0.1f;
        average[i] = value;
        if (out != average) out[i] = value;
    }
}

extern "C" void run(float* average, const float* x, float* out, long count, cudaStream_t stream) {
    update<<<1056, 256, 0, stream>>>(average, x, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def forward(self, x):
        out = torch.empty_like(x) if x.data_ptr() % (2 << 20) else self.average
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (self.average, x, out))
        library.run(*pointers, ctypes.c_long(x.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
