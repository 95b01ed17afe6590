"""Computes the gate in a kernel of its own, and has the library multiply what that kernel wrote.

mechanism: Its kernel only prepares what the library works on, which still lies there from the call before.
problem: kernel_required/gpu_gated_linear
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void apply_gate(const float* x, const float* gate, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = gate[i] / (1.0f + expf(-gate[i])) * x[i];
}

extern "C" void run(const float* x, const float* gate, float* out, long count, cudaStream_t stream) {
    apply_gate<<<1056, 256, 0, stream>>>(x, gate, out, count);
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
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def forward(self, x, gate):
        gated = torch.empty_like(x)
        run("run", x, gate, gated, gated.numel())
        return self.linear(gated)
