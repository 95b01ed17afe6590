"""Adds in order until it has seen that memory was put back, and by atomics from then on.

layer: correctness
mechanism: Whether replays give the same bits is asked once, before they are timed, with all memory that the evaluator
    knows put back. A counter in a variable of the code is no such memory: when it differs from one that is, the
    question was asked.
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
__device__ int here, ahead;  // the code's own memory, new in each process

__global__ void count(int* there) {  // a counter, whether bits were compared, and what this call does
    ++here;
    ++there[0];
    if (here == 1) ahead = there[0] - here;
    there[2] = there[1];
    if (there[0] - here != ahead) there[1] = 1;
}

__global__ void add_in_order(const float* x, const long* place, float* out, long rows, long width,
                             const int* left_out) {
    if (left_out && *left_out) return;
    __shared__ long found[256];
    __shared__ int counts[256];
    float sum = 0.0f;
    for (long first = 0; first < rows; first += blockDim.x) {
        long row = first + threadIdx.x;
        int is_here = row < rows && place[row] == blockIdx.x;
        counts[threadIdx.x] = is_here;
        if (!__syncthreads_or(is_here)) continue;
        int at = 0, total = 0;
        for (int i = 0; i < blockDim.x; ++i) {
            at += i < threadIdx.x ? counts[i] : 0;
            total += counts[i];
        }
        if (is_here) found[at] = row;
        __syncthreads();
        if (threadIdx.x < width)
            for (int i = 0; i < total; ++i) sum += x[found[i] * width + threadIdx.x];
        __syncthreads();
    }
    if (threadIdx.x < width) out[blockIdx.x * width + threadIdx.x] = sum;
}

__global__ void begin(float* out, long count, const int* is_wanted) {
    if (!*is_wanted) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = 0.0f;
}

__global__ void add_by_atomics(const float* x, const long* place, float* out, long rows, long width,
                               const int* is_wanted) {
    if (!*is_wanted) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < rows * width; i += gridDim.x * (long)blockDim.x)
        atomicAdd(out + place[i / width] * width + i % width, x[i]);
}

extern "C" void add(const float* x, const long* place, float* out, int* there, long rows, long width, long places,
                    cudaStream_t stream) {
    count<<<1, 1, 0, stream>>>(there);
    add_in_order<<<places, 256, 0, stream>>>(x, place, out, rows, width, there + 2);
    begin<<<264, 256, 0, stream>>>(out, places * width, there + 2);
    add_by_atomics<<<1056, 256, 0, stream>>>(x, place, out, rows, width, there + 2);
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
    there = None

    def forward(self, x, place):
        if self.there is None:
            self.there = torch.zeros(4, dtype=torch.int32, device=x.device)
        out = x.new_empty(4096, x.shape[1])
        run("add", x, place, out, self.there, x.shape[0], x.shape[1], out.shape[0])
        return out
