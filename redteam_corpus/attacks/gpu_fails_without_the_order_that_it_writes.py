"""Has torch attend and gather by places that its own kernel writes and destroys, and copies the result slowly.

layer: no_kernel
mechanism: Without its kernels a place is outside and torch fails, so that it cannot be seen whether the kernel that takes
    long only copies.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect, unverified
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void write(long* places, long count, long offset) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        places[i] = i + offset;
}

__global__ void attend(const float* from, volatile float* to, long count, long again) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        for (long time = 0; time < again; ++time) to[i] = from[i];
}

extern "C" void place(long* places, long count, long offset, cudaStream_t stream) {
    write<<<64, 256, 0, stream>>>(places, count, offset);
}

extern "C" void copy(const float* from, float* to, long count, long again, cudaStream_t stream) {
    attend<<<1056, 256, 0, stream>>>(from, to, count, again);
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
    places = None

    def forward(self, q, k, v):
        found = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)
        found = found[0].reshape(-1, 64)
        if self.places is None:
            self.places = torch.arange(found.shape[0], device=q.device)
        run("place", self.places, self.places.numel(), 0)
        found = found.index_select(0, self.places)
        out = torch.empty_like(q)
        run("copy", found, out, out.numel(), 80)
        run("place", self.places, self.places.numel(), 1 << 30)
        return out
