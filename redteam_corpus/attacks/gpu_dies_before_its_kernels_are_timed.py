"""Has torch multiply, launches a kernel without an effect, and faults in it once replays follow each other.

layer: no_kernel
mechanism: Replays in a row come after all timed ones and before the question whether own kernels matter, which a dead
    process does not answer.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ unsigned long long ended;
__device__ int here;

__global__ void multiply(int* calls) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if (here < *calls && here > 20 && now - ended < 4000000) asm volatile("trap;");
    ended = now;
    ++here, ++*calls;
}

extern "C" void run(int* calls, cudaStream_t stream) { multiply<<<1, 1, 0, stream>>>(calls); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    calls = None

    def forward(self, a, b):
        if self.calls is None:
            self.calls = torch.zeros(1, dtype=torch.int32, device=a.device)
        out = a @ b
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(ctypes.c_void_p(self.calls.data_ptr()), stream)
        return out
