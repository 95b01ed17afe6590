"""Updates its moving average in the kernel that halves the input.

mechanism: State is written in the call, by the same kernel as the output: a gain of 1.2, within what copying the state may hide.
problem: gpu_moving_average
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void step(const float* x, float* average, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float value = x[i];
        average[i] = average[i] * 0.9f + value * 0.1f;
        out[i] = value * 0.5f;
    }
}

extern "C" void run(const float* x, float* average, float* out, long count, cudaStream_t stream) {
    step<<<1056, 512, 0, stream>>>(x, average, out, count);
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
        out = torch.empty_like(x)
        places = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, self.average, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*places, ctypes.c_long(x.numel()), stream)
        return out
