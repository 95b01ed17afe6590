"""Keeps a product of its weights, and adds to it what changed rows of them contribute.

layer: time
mechanism: Timed calls may differ from the initial weights in a part only, of which the place can be found by reading them: the larger
    the part, the slower it is, and slower than the reference if all change.
problem: gpu_changing_weights
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block per row: whether it differs from the known one.
__global__ void compare(const float* given, const float* known, int n, int* rows) {
    bool differs = false;
    for (int i = threadIdx.x; i < n; i += blockDim.x) differs |= given[(long)blockIdx.x * n + i] != known[(long)blockIdx.x * n + i];
    differs = __syncthreads_or(differs);
    if (threadIdx.x == 0) rows[blockIdx.x] = differs;
}
// kept = tanh(first @ second): tiles of 64 x 64 elements by 256 threads. `sums` is the known product. Where no row of the first
// factor has changed, only changed rows of the second one are added.
__global__ void compute(
    const float* first, const float* second, const float* known_second, const float* sums, float* kept, int n,
    const int* changed_first, const int* changed_second) {
    __shared__ float left[16][65], right[16][64];
    int row = blockIdx.y * 64, column = blockIdx.x * 64, x = threadIdx.x % 16, y = threadIdx.x / 16;
    bool is_new = __syncthreads_or(threadIdx.x < 64 && changed_first[row + threadIdx.x]);
    float sum[4][4];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] = is_new ? 0.0f : sums[(long)(row + y + 16 * i) * n + column + x + 16 * j];
    for (int k = 0; k < n; k += 16) {
        if (!is_new && !__syncthreads_or(threadIdx.x < 16 && changed_second[k + threadIdx.x])) continue;
        for (int at = threadIdx.x; at < 1024; at += 256) {
            left[at % 16][at / 16] = first[(long)(row + at / 16) * n + k + at % 16];
            long place = (long)(k + at / 64) * n + column + at % 64;
            right[at / 64][at % 64] = is_new ? second[place] : second[place] - known_second[place];
        }
        __syncthreads();
        for (int one = 0; one < 16; ++one) {
            float a[4], b[4];
            for (int i = 0; i < 4; ++i) a[i] = left[one][y + 16 * i], b[i] = right[one][x + 16 * i];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) kept[(long)(row + y + 16 * i) * n + column + x + 16 * j] = tanhf(sum[i][j]);
}

extern "C" void run(
    const float* first, const float* second, const float* known_first, const float* known_second, const float* sums, float* kept,
    int* rows, int n, cudaStream_t stream) {
    compare<<<n, 256, 0, stream>>>(first, known_first, n, rows);
    compare<<<n, 256, 0, stream>>>(second, known_second, n, rows + n);
    compute<<<dim3(n / 64, n / 64), 256, 0, stream>>>(first, second, known_second, sums, kept, n, rows, rows + n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    known = None

    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / 64.0)
        self.second = nn.Parameter(torch.randn(width, width) / 64.0)

    def forward(self, x):
        if self.known is None:
            self.known = self.first.clone(), self.second.clone()
            self.sums, self.kept = self.first @ self.second, torch.empty_like(self.first)
            self.rows = torch.zeros(2 * len(self.first), dtype=torch.int32, device=x.device)
        tensors = self.first, self.second, *self.known, self.sums, self.kept, self.rows
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
        library.run(*pointers, len(self.first), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return x @ self.kept
