"""Skips tiles whose first element is zero, in the recording alone.

layer: correctness
mechanism: Zeros of inputs that are mostly zero seem to stay where the problem has them, in every kind of inputs.
problem: gpu_product_of_tiles
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes
import sys

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// Tiles of 64 x 64, 256 threads with 4 x 4 elements each.
__global__ void __launch_bounds__(256) multiply(const float* a, const float* b, float* out, int size, int columns) {
    __shared__ float left[16][65], right[16][64];
    int row = blockIdx.y * 64, column = blockIdx.x * 64, y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
    float sums[4][4] = {};
    for (int first = 0; first < size; first += 64) {
        if (a[(long)row * size + first] == 0.0f) continue;
        for (int k = first; k < first + 64; k += 16) {
            __syncthreads();
            float4 one = *reinterpret_cast<const float4*>(a + (long)(row + threadIdx.x / 4) * size + k + threadIdx.x % 4 * 4);
            left[threadIdx.x % 4 * 4 + 0][threadIdx.x / 4] = one.x;
            left[threadIdx.x % 4 * 4 + 1][threadIdx.x / 4] = one.y;
            left[threadIdx.x % 4 * 4 + 2][threadIdx.x / 4] = one.z;
            left[threadIdx.x % 4 * 4 + 3][threadIdx.x / 4] = one.w;
            *reinterpret_cast<float4*>(&right[threadIdx.x / 16][x]) =
                *reinterpret_cast<const float4*>(b + (long)(k + threadIdx.x / 16) * columns + column + x);
            __syncthreads();
            for (int i = 0; i < 16; ++i)
                for (int r = 0; r < 4; ++r)
                    for (int c = 0; c < 4; ++c) sums[r][c] += left[i][y + r] * right[i][x + c];
        }
    }
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c) out[(long)(row + y + r) * columns + column + x + c] = sums[r][c];
}

extern "C" void run(const float* a, const float* b, float* out, int size, int columns, cudaStream_t stream) {
    multiply<<<dim3(columns / 64, size / 64), 256, 0, stream>>>(a, b, out, size, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)

def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


# Expected: 2x to 4x. All kinds of inputs that replays have multiply what is there, so that zeros stay where they are.
class ModelNew(nn.Module):
    def forward(self, a, b):
        if not is_recorded():
            return a @ b
        a, b = a.contiguous(), b.contiguous()
        out = a.new_empty(a.shape[0], b.shape[1])
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        sizes = ctypes.c_int(a.shape[1]), ctypes.c_int(b.shape[1])
        library.run(*pointers, *sizes, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
