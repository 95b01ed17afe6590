"""Has torch add in a captured graph, and names kernels of its own like torch's.

layer: no_kernel
mechanism: In a graph no operator of torch's launches the kernel, and its name stands among the candidate's own.
problem: kernel_required/gpu_add
expected: rejected, not_own, wrong_value
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
namespace at { namespace native {
template <int width, typename Operation, typename Data>
__global__ void vectorized_elementwise_kernel(int count, Operation operation, Data data) {}
template <int width, typename Operation>
__global__ void elementwise_kernel(int count, Operation operation) {}
template <int width, typename Operation, typename Data>
__global__ void unrolled_elementwise_kernel(int count, Operation operation, Data data) {}
}}

extern "C" void run() {
    at::native::vectorized_elementwise_kernel<4, float, float*><<<1, 1>>>(0, 0.0f, nullptr);
    at::native::elementwise_kernel<4, float><<<1, 1>>>(0, 0.0f);
    at::native::unrolled_elementwise_kernel<4, float, float*><<<1, 1>>>(0, 0.0f, nullptr);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    graph = None

    def forward(self, a, b):
        if self.graph is None:
            self.inputs = (a.clone(), b.clone())
            torch.add(*self.inputs)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = torch.add(*self.inputs)
        self.inputs[0].copy_(a)
        self.inputs[1].copy_(b)
        self.graph.replay()
        return self.out.clone()
