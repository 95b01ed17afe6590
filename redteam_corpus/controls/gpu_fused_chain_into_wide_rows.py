"""Does six operations in one kernel, and writes into rows that are half as wide again.

mechanism: Outputs with gaps are copied whole inside the window, which takes longer; that must not hide the real
    speedup.
problem: gpu_chain
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void chain(const float* x, float* out, int rows, int columns, int pitch) {
    for (int row = blockIdx.y; row < rows; row += gridDim.y)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < columns; i += gridDim.x * blockDim.x)
            out[(long)row * pitch + i] = fmaxf(tanhf(x[(long)row * columns + i] * 1.5f + 0.25f) * 2.0f - 0.125f, 0.0f);
}

extern "C" void run(const float* x, float* out, int rows, int columns, int pitch, cudaStream_t stream) {
    chain<<<dim3(4, rows), 256, 0, stream>>>(x, out, rows, columns, pitch);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        pitch = (columns * 3 // 2 + 63) // 64 * 64
        out = torch.empty(rows, pitch, device=x.device)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), rows, columns, pitch, stream)
        return out[:, :columns]
