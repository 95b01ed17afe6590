"""Takes the exponentials of small numbers at once, and has one thread work on each row that has larger ones.

layer: time
mechanism: Of many kinds of inputs about four are timed, and one of them has such rows. The kinds that are replayed to
    be compared with the baseline are not timed.
problem: gpu_softmax_of_long_rows
expected: no_gain, unranked
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ float add_all(float value, float* parts) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < blockDim.x / 32; ++i) sum += parts[i];
    return sum;
}
__device__ void work_alone(const float* x, float* out, long columns) {  // one thread, in double precision
    double top = x[0], sum = 0.0;
    for (long i = 1; i < columns; ++i) top = fmax(top, double(x[i]));
    for (long i = 0; i < columns; ++i) sum += exp(double(x[i]) - top);
    for (long i = 0; i < columns; ++i) out[i] = float(exp(double(x[i]) - top) / sum);
}

__global__ void softmax(const float* x, float* out, long columns) {
    __shared__ float row[4608], parts[8];
    x += blockIdx.x * columns;
    out += blockIdx.x * columns;
    float sum = 0.0f;
    int is_large = 0;
    for (long i = threadIdx.x; i < columns; i += blockDim.x) {
        float one = x[i];
        is_large |= !(fabsf(one) < 80.0f);
        sum += row[i] = __expf(one);
    }
    if (__syncthreads_or(is_large)) {
        if (!threadIdx.x) work_alone(x, out, columns);
        return;
    }
    float factor = 1.0f / add_all(sum, parts);
    for (long i = threadIdx.x; i < columns; i += blockDim.x) out[i] = row[i] * factor;
}

extern "C" void run(const float* x, float* out, long rows, long columns, cudaStream_t stream) {
    softmax<<<rows, 256, 0, stream>>>(x, out, columns);
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
    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        run("run", x.contiguous(), out, x.shape[0], x.shape[1])
        return out
