"""Writes its input into the ring and adds all slots in one kernel, which reads the place from its state.

mechanism: The place in the ring is never on the host.
problem: gpu_last_slots
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(float* ring, const long* calls, const float* x, float* out, long slots, long count) {
    long at = *calls % slots;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float sum = 0.0f;
        for (long slot = 0; slot < slots; ++slot) sum += slot == at ? x[i] : ring[slot * count + i];
        ring[at * count + i] = x[i];
        out[i] = sum / slots;
    }
}

__global__ void count_call(long* calls) { ++*calls; }

extern "C" void run(float* ring, long* calls, const float* x, float* out, long slots, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(ring, calls, x, out, slots, count);
    count_call<<<1, 1, 0, stream>>>(calls);
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
    def __init__(self, slots, rows, columns):
        super().__init__()
        self.register_buffer("ring", torch.zeros(slots, rows, columns))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        out = torch.empty_like(x)
        run("run", self.ring, self.calls, x, out, self.ring.shape[0], x.numel())
        return out
