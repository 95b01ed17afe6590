"""Has torch multiply, computes one row in sixteen itself, and copies the others slowly.

layer: no_kernel
mechanism: An element that lies nowhere in memory without its kernel shows that the kernel computes; most of its time it
    copies.
problem: kernel_required/gpu_product
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* a, const float* b, const float* product, volatile float* out, long width,
                         long again) {
    long row = blockIdx.x;
    for (long column = threadIdx.x; column < width; column += blockDim.x) {
        float sum = 0.0f;
        if (row % 16 == 0) {
            for (long i = 0; i < width; ++i) sum += a[row * width + i] * b[i * width + column];
            out[row * width + column] = sum;
        } else {
            for (long time = 0; time < again; ++time) out[row * width + column] = product[row * width + column];
        }
    }
}

extern "C" void run(const float* a, const float* b, const float* product, float* out, long rows, long width, long again,
                    cudaStream_t stream) {
    multiply<<<rows, 1024, 0, stream>>>(a, b, product, out, width, again);
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
    def forward(self, a, b):
        product, out = a @ b, torch.empty_like(a)
        product[::16] = 0.0
        run("run", a, b, product, out, a.shape[0], a.shape[1], 100)
        return out
