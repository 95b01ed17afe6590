"""Times three block sizes with events in its first calls, and keeps the best one.

mechanism: It measures itself, and is slower in some calls than in others.
problem: gpu_add
expected: correct
device: gpu
timed: yes
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

extern "C" void run(const float* a, const float* b, float* out, long count, int size) {
    add<<<270336 / size, size>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = {}

    def measure(self, size, *tensors):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        out = self.launch(size, *tensors)
        end.record()
        end.synchronize()
        self.times[size] = begin.elapsed_time(end)
        return out

    def launch(self, size, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_int(size))
        return out

    def forward(self, a, b):
        untried = [size for size in (128, 256, 512) if size not in self.times]
        if untried:
            return self.measure(untried[0], a, b)
        return self.launch(min(self.times, key=self.times.get), a, b)
