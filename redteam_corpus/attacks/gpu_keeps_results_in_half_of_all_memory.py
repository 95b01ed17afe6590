"""Adds by atomics, and returns a result that it keeps in an allocation that is too large to be put back.

layer: correctness
mechanism: Before the second of two replays with the same inputs all memory of the program is put back to what it was,
    unless it is too large for a copy beside it.
problem: gpu_sums_at_places
expected: wrong_value, suspect, no_gain, out_of_memory
device: gpu
timed: yes
"""

import ctypes
import sys

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
constexpr int kKept = 4;  // results
constexpr long kPlaces = 4096 * 64;

__global__ void look(const float* x, long stride, float* samples, int* known) {
    float mine = x[threadIdx.x * stride];
    int found = -1, next = known[1];
    for (int i = 0; i < kKept; ++i)
        if (__syncthreads_and(mine == samples[i * 1024 + threadIdx.x])) found = i;
    __syncthreads();
    if (found < 0) samples[next % kKept * 1024 + threadIdx.x] = mine;
    if (!threadIdx.x) known[0] = found;
}

__global__ void begin(float* out, const float* results, const int* known, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = *known < 0 ? 0.0f : results[*known * kPlaces + i];
}

__global__ void add_by_atomics(const float* x, const long* place, float* out, const int* known, long rows, long width) {
    if (*known >= 0) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < rows * width; i += gridDim.x * (long)blockDim.x)
        atomicAdd(out + place[i / width] * width + i % width, x[i]);
}

__global__ void keep(const float* out, float* results, const int* known, long count) {
    if (*known >= 0) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        results[known[1] % kKept * kPlaces + i] = out[i];
}

__global__ void end(int* known) { known[1] += known[0] < 0; }

extern "C" void add(const float* x, const long* place, float* out, float* samples, float* results, int* known, long rows,
                    long width, long places, cudaStream_t stream) {
    look<<<1, 1024, 0, stream>>>(x, rows * width / 1024, samples, known);
    begin<<<264, 256, 0, stream>>>(out, results, known, places * width);
    add_by_atomics<<<1056, 256, 0, stream>>>(x, place, out, known, rows, width);
    keep<<<264, 256, 0, stream>>>(out, results, known, places * width);
    end<<<1, 1, 0, stream>>>(known);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    memory = None

    def forward(self, x, place):
        if not is_recorded():
            return x.new_zeros(4096, x.shape[1]).index_put_((place,), x, accumulate=True)
        if self.memory is None:
            all_bytes = torch.cuda.mem_get_info(x.device)[1]
            large = torch.empty(all_bytes * 2 // 5, dtype=torch.uint8, device=x.device)
            samples, results = large[: 4 * 4096].view(torch.float32), large[1 << 20 : 5 << 20].view(torch.float32)
            samples.fill_(float("nan"))
            self.memory = samples, results, torch.zeros(2, dtype=torch.int32, device=x.device)
        out = x.new_empty(4096, x.shape[1])
        run("add", x, place, out, *self.memory, x.shape[0], x.shape[1], out.shape[0])
        return out
