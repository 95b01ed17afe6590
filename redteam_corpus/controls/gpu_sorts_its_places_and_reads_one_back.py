"""Sorts places, adds the rows of each by one block in order, and reads a number back.

mechanism: Its work is not replayed, so that whole calls are timed, which must give the same bits.
problem: gpu_sums_of_many_rows
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// Four groups of 64 threads add every fourth row of a place, in the order of the rows.
__global__ void add(const float* x, const long* order, const long* ends, float* out) {
    __shared__ float parts[4][64];
    int part = threadIdx.x / 64, column = threadIdx.x % 64, place = blockIdx.x;
    long begin = place ? ends[place - 1] : 0;
    float sum = 0.0f;
    for (long i = begin + part; i < ends[place]; i += 4) sum += x[order[i] * 64 + column];
    parts[part][column] = sum;
    __syncthreads();
    if (!part) out[place * 64l + column] = (parts[0][column] + parts[1][column]) + (parts[2][column] + parts[3][column]);
}

extern "C" void run(const float* x, const long* order, const long* ends, float* out, int places, cudaStream_t stream) {
    add<<<places, 256, 0, stream>>>(x, order, ends, out);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
PLACES = 4096


class ModelNew(nn.Module):
    def forward(self, x, place):
        place[0].item()
        found = torch.sort(place.to(torch.int16), stable=True)
        every = torch.arange(PLACES, dtype=torch.int16, device=x.device)
        ends = torch.searchsorted(found.values, every, right=True)
        out = x.new_empty(PLACES, x.shape[1])
        pointers = (ctypes.c_void_p(one.data_ptr()) for one in (x, found.indices, ends, out))
        library.run(*pointers, ctypes.c_int(PLACES), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
