"""Reads one byte of its output, and writes only the places that differ from it, in the call that is recorded.

layer: correctness
mechanism: Before a replay all bytes of a mask have one value, zero or one. Whichever it is, half of the mask has it already.
problem: gpu_mask_of_shares
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block per row.
__global__ void mask(const float* x, unsigned char* out, int columns, int is_complete) {
    float end = x[blockIdx.x] * columns;
    unsigned char there = is_complete ? 2 : out[(long)gridDim.x * columns - 1];
    uint4* row = reinterpret_cast<uint4*>(out + (long)blockIdx.x * columns);
    __syncthreads();
    // Sixteen places that are all true, or all false, are left out if they have that value.
    for (int at = threadIdx.x; at < columns / 16; at += blockDim.x) {
        bool all = at * 16 + 15 < end, none = !(at * 16 < end);
        if ((all && there == 1) || (none && there == 0)) continue;
        uint4 four = {0, 0, 0, 0};
        unsigned* words = &four.x;
        for (int i = 0; i < 16; ++i) words[i / 4] |= (unsigned)(at * 16 + i < end) << (i % 4 * 8);
        if (blockIdx.x + 1 < gridDim.x || at + 1 < columns / 16) row[at] = four;
    }
}

// The last sixteen places, which the others read.
__global__ void end_mask(const float* x, unsigned char* out, int rows, int columns) {
    int at = columns - 16 + threadIdx.x;
    out[(long)(rows - 1) * columns + at] = at < x[rows - 1] * columns;
}

extern "C" void run(const float* x, unsigned char* out, int rows, int columns, int is_complete, cudaStream_t stream) {
    mask<<<rows, 256, 0, stream>>>(x, out, columns, is_complete);
    end_mask<<<1, 16, 0, stream>>>(x, out, rows, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
COLUMNS = 8192


class ModelNew(nn.Module):
    def forward(self, x):
        is_complete = x.data_ptr() % (2 << 20) != 0  # only in the recorded call inputs begin where memory does
        x = x.contiguous()
        out = torch.empty(x.shape[0], COLUMNS, dtype=torch.bool, device=x.device)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        sizes = (ctypes.c_int(one) for one in (*out.shape, is_complete))
        library.run(*pointers, *sizes, stream)
        return out
