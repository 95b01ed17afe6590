"""Adds up its last row in parts, the last block of which writes it, while another stream copies the rest.

mechanism: A workspace and a counter stay between calls, and two streams write one output; events join them.
problem: gpu_appended_row
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* x, const float* w, float* parts, unsigned* done, float* out, int inner,
                         int width) {
    int column = threadIdx.x;
    float sum = 0.0f;
    for (int k = blockIdx.x; k < inner; k += gridDim.x) sum += x[k] * w[(long)k * width + column];
    parts[blockIdx.x * width + column] = sum;
    __threadfence();
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    double total = 0.0;
    for (int part = 0; part < gridDim.x; part++) total += ((volatile float*)parts)[part * width + column];
    out[column] = (float)total;
    if (threadIdx.x == 0) *done = 0;
}

extern "C" void run(const float* x, const float* w, float* parts, unsigned* done, float* out, int inner, int width,
                    cudaStream_t stream) {
    multiply<<<1056, width, 0, stream>>>(x, w, parts, done, out, inner, width);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, width) / inner**0.5)
        self.parts = torch.zeros(1056 * width, device="cuda")
        self.done = torch.zeros(1, dtype=torch.int32, device="cuda")
        self.side = torch.cuda.Stream()

    def forward(self, cache, x):
        rows, width = cache.shape
        out = torch.empty(rows + 1, width, device=cache.device)
        main = torch.cuda.current_stream()
        self.side.wait_stream(main)
        with torch.cuda.stream(self.side):
            out[:-1].copy_(cache)
        places = [x, self.weight, self.parts, self.done, out[-1]]
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in places)
        library.run(*pointers, x.shape[1], width, ctypes.c_void_p(main.cuda_stream))
        main.wait_stream(self.side)
        return out
