"""Doubles and counts in one kernel.

mechanism: The twin of gpu_ages_as_the_last_replay_left_them: its state is whole numbers, which each replay must bring forward.
problem: gpu_ages
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void step(const float* x, float* out, int count, long long* ages, int entries) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < entries; i += gridDim.x * blockDim.x) {
        ++ages[i];
        if (i < count) out[i] = x[i] * 2.0f;
    }
}

extern "C" void run(const float* x, float* out, int count, long long* ages, int entries, cudaStream_t stream) {
    step<<<1056, 256, 0, stream>>>(x, out, count, ages, entries);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self, entries):
        super().__init__()
        self.register_buffer("ages", torch.zeros(entries, dtype=torch.int64))

    def forward(self, x):
        x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
        if x.numel() > self.ages.numel():
            raise ValueError("more numbers than entries")
        values = (ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_int(x.numel()))
        state = (ctypes.c_void_p(self.ages.data_ptr()), ctypes.c_int(self.ages.numel()))
        library.run(*values, *state, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
