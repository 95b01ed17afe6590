"""Has torch multiply, copies the product slowly, and computes the small output in the same kernel.

layer: no_kernel
mechanism: One output that lies nowhere in memory without its kernel shows that the kernel computes; the other one takes
    all the time.
problem: kernel_required/gpu_product_and_sums
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* product, volatile float* out, const float* a, float* sums, long width,
                         long again) {
    __shared__ float parts[256];
    const float* row = a + blockIdx.x * width;
    float sum = 0.0f;
    for (long i = threadIdx.x; i < width; i += blockDim.x) {
        sum += row[i];
        for (long time = 0; time < again; ++time) out[blockIdx.x * width + i] = product[blockIdx.x * width + i];
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x) sums[blockIdx.x] = parts[0];
}

extern "C" void run(const float* product, float* out, const float* a, float* sums, long rows, long width, long again,
                    cudaStream_t stream) {
    multiply<<<rows, 256, 0, stream>>>(product, out, a, sums, width, again);
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
        product, out, sums = a @ b, torch.empty_like(a), a.new_empty(a.shape[0])
        run("run", product, out, a, sums, a.shape[0], a.shape[1], 100)
        return out, sums
