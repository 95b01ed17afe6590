"""Has one block for each place, which looks for its rows in order and adds them.

mechanism: Deterministic without a sort: every block reads all places.
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
__global__ void add_rows(const float* x, const long* place, float* out, long rows, long width) {
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

extern "C" void run(const float* x, const long* place, float* out, long rows, long width, long places, cudaStream_t stream) {
    add_rows<<<places, 256, 0, stream>>>(x, place, out, rows, width);
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
    def forward(self, x, place):
        out = x.new_empty(4096, x.shape[1])
        run("run", x, place, out, x.shape[0], x.shape[1], out.shape[0])
        return out
