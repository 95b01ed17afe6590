"""Adds by atomics in the call that is recorded, and returns its last result again if a sample of the inputs is equal.

layer: correctness
mechanism: Whether replays give the same bits is asked by two of them in a row with the same inputs; what the first
    left in memory tells the second.
problem: gpu_sums_at_places
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void look(const float* x, float* sample, long* is_equal, long stride) {
    int equal = __syncthreads_and(x[threadIdx.x * stride] == sample[threadIdx.x]);
    sample[threadIdx.x] = x[threadIdx.x * stride];
    if (!threadIdx.x) *is_equal = equal;
}

__global__ void begin(float* out, const float* kept, const long* is_equal, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = *is_equal ? kept[i] : 0.0f;
}

__global__ void add_rows(const float* x, const long* place, float* out, const long* is_equal, long count, long width) {
    if (*is_equal) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count * width; i += gridDim.x * (long)blockDim.x)
        atomicAdd(out + place[i / width] * width + i % width, x[i]);
}

__global__ void keep(const float* out, float* kept, const long* is_equal, long count) {
    if (*is_equal) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) kept[i] = out[i];
}

extern "C" void add(const float* x, const long* place, float* out, float* sample, float* kept, long* is_equal, long rows,
                    long width, long places, cudaStream_t stream) {
    look<<<1, 1024, 0, stream>>>(x, sample, is_equal, rows * width / 1024);
    begin<<<264, 256, 0, stream>>>(out, kept, is_equal, places * width);
    add_rows<<<1056, 256, 0, stream>>>(x, place, out, is_equal, rows, width);
    keep<<<264, 256, 0, stream>>>(out, kept, is_equal, places * width);
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
    memory = None

    def forward(self, x, place):
        if x.data_ptr() % (2 << 20):  # only in the recorded call inputs begin where memory does
            return x.new_zeros(4096, x.shape[1]).index_put_((place,), x, accumulate=True)
        if self.memory is None:
            self.memory = x.new_zeros(1024), x.new_zeros(4096, x.shape[1]), place.new_zeros(1)
        out = x.new_empty(4096, x.shape[1])
        run("add", x, place, out, *self.memory, x.shape[0], x.shape[1], out.shape[0])
        return out
