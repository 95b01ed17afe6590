"""Keeps its weights as two planes of 16 bits, joins them in each call in a kernel of its own, and has cuBLAS multiply.

mechanism: The weights of the last call are still in memory, so that the product is right without its kernel.
problem: kernel_required/gpu_linear_relu
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void join(const unsigned short* low, const unsigned short* high, unsigned int* joined, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        joined[i] = low[i] | (unsigned int)high[i] << 16;
}

extern "C" void run(const unsigned short* low, const unsigned short* high, unsigned int* joined, long count, cudaStream_t stream) {
    join<<<528, 256, 0, stream>>>(low, high, joined, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)
        self.version, self.planes = None, ()

    def forward(self, x):
        weight = self.linear.weight
        if self.version != (weight.data_ptr(), weight._version):
            self.version = (weight.data_ptr(), weight._version)
            self.planes = tuple(weight.detach().contiguous().view(torch.int16).view(-1, 2).t().contiguous())
        joined = torch.empty_like(weight)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (*self.planes, joined))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(joined.numel()), stream)
        return torch.addmm(self.linear.bias, x, joined.t()).relu()
