"""Sorts rows by place, keeping their order, and adds those of each place in a block of its own.

mechanism: Deterministic without atomics: the twin of those that add in order only until their bits were compared.
problem: gpu_sums_at_places
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add_rows(const float* x, const long* order, const long* starts, float* out, long width) {
    float sum = 0.0f;
    for (long i = starts[blockIdx.x]; i < starts[blockIdx.x + 1]; ++i) sum += x[order[i] * width + threadIdx.x];
    out[blockIdx.x * width + threadIdx.x] = sum;
}

extern "C" void run(const float* x, const long* order, const long* starts, float* out, long width, long places,
                    cudaStream_t stream) {
    add_rows<<<places, width, 0, stream>>>(x, order, starts, out, width);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


class ModelNew(nn.Module):
    def forward(self, x, place):
        ordered, order = torch.sort(place, stable=True)
        starts = torch.searchsorted(ordered, torch.arange(4097, device=x.device))
        out = x.new_empty(4096, x.shape[1])
        run("run", x, order, starts, out, x.shape[1], 4096)
        return out
