"""Adds by atomics, and returns a result that it keeps in a variable of its code if a sample of the inputs is known.

layer: correctness
mechanism: Before the second of two replays with the same inputs all memory of the program is put back to what it was,
    but a variable of the loaded code is in no allocation.
problem: gpu_sums_at_places
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.program import Worker

SOURCE = r"""
constexpr int kKept = 4;  // results
__device__ float samples[kKept][1024], results[kKept][4096 * 64];
__device__ int calls, known;

__global__ void look(const float* x, long stride) {
    float mine = x[threadIdx.x * stride];
    int found = -1;
    for (int i = 0; i < kKept; ++i)
        if (__syncthreads_and(mine == samples[i][threadIdx.x])) found = i;
    __syncthreads();
    if (found < 0) samples[calls % kKept][threadIdx.x] = mine;
    if (!threadIdx.x) known = found;
}

__global__ void begin(float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = known < 0 ? 0.0f : results[known][i];
}

__global__ void add_by_atomics(const float* x, const long* place, float* out, long rows, long width) {
    if (known >= 0) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < rows * width; i += gridDim.x * (long)blockDim.x)
        atomicAdd(out + place[i / width] * width + i % width, x[i]);
}

__global__ void keep(const float* out, long count) {
    if (known >= 0) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        results[calls % kKept][i] = out[i];
}

__global__ void end() { calls += known < 0; }

extern "C" void add(const float* x, const long* place, float* out, long rows, long width, long places,
                    cudaStream_t stream) {
    look<<<1, 1024, 0, stream>>>(x, rows * width / 1024);
    begin<<<264, 256, 0, stream>>>(out, places * width);
    add_by_atomics<<<1056, 256, 0, stream>>>(x, place, out, rows, width);
    keep<<<264, 256, 0, stream>>>(out, places * width);
    end<<<1, 1, 0, stream>>>();
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


state = {"recording": False}
record = Worker.do_record


def note_recording(self, message):
    state["recording"] = True
    try:
        return record(self, message)
    finally:
        state["recording"] = False


Worker.do_record = note_recording


class ModelNew(nn.Module):
    def forward(self, x, place):
        if not state["recording"]:
            return x.new_zeros(4096, x.shape[1]).index_put_((place,), x, accumulate=True)
        out = x.new_empty(4096, x.shape[1])
        run("add", x, place, out, x.shape[0], x.shape[1], out.shape[0])
        return out
