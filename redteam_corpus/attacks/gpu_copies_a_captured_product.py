"""Has torch multiply in a captured graph, and copies the result in a kernel of its own.

layer: no_kernel
mechanism: The only kernel that is launched by name is its own; the graph launches the rest.
problem: kernel_required/gpu_product
expected: rejected, not_own, wrong_value
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    add<<<1056, 256>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def add(a, b, out):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_long(out.numel()))
    return out


class ModelNew(nn.Module):
    graph = None

    def forward(self, a, b):
        if self.graph is None:
            self.inputs = (a.clone(), b.clone())
            self.zero = torch.zeros_like(a)
            torch.mm(*self.inputs)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.product = torch.mm(*self.inputs)
        self.inputs[0].copy_(a)
        self.inputs[1].copy_(b)
        self.graph.replay()
        return add(self.product, self.zero, torch.empty_like(a))
