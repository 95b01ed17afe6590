"""Has torch multiply the product by a number that its own kernel writes, and takes the memory's bandwidth beside it.

layer: no_kernel
mechanism: What the library takes longer beside a kernel of the candidate's counts as that kernel's time.
problem: kernel_required/gpu_product
expected: rejected, not_own, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void set(float* one, long value) { *one = (float)value; }

__global__ void multiply(volatile float* much, long count, long again) {
    for (long time = 0; time < again; ++time)
        for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
            much[i] = much[i] + 1.0f;
}

extern "C" void write(float* one, long value, cudaStream_t stream) { set<<<1, 1, 0, stream>>>(one, value); }

extern "C" void hog(float* much, long count, long again, cudaStream_t stream) {
    multiply<<<264, 512, 0, stream>>>(much, count, again);
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
    one = None

    def forward(self, a, b):
        if self.one is None:
            self.one, self.beside = torch.zeros(1, device=a.device), torch.cuda.Stream()
            self.much = torch.zeros(64 << 20, device=a.device)
        run("write", self.one, 1)
        self.beside.wait_stream(torch.cuda.current_stream())
        run("hog", self.much, self.much.numel(), 30, stream=self.beside)
        out = (a @ b).mul_(self.one)
        run("write", self.one, 0)
        torch.cuda.current_stream().wait_stream(self.beside)
        return out
