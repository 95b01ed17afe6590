"""Has torch attend to as many elements as its own kernel says, clears these numbers, and spins after its timed replays.

layer: no_kernel
mechanism: Without the candidate's kernels torch's ends at once, and where kernels are timed one by one, after hundreds of
    replays, the candidate's take longest: both measures of their share are large.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ int here;

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__global__ void attend(int* starts, int count, int length) {
    unsigned long long began = now();
    if (threadIdx.x <= count) starts[threadIdx.x] = threadIdx.x * length;
    int* calls = starts + count + 1;
    if (here < *calls && here > 240)
        while (now() - began < 5000000) {}
    __syncwarp();
    if (threadIdx.x == 0) ++here, ++*calls;
}

extern "C" void run(int* starts, int count, int length, cudaStream_t stream) {
    attend<<<1, 32, 0, stream>>>(starts, count, length);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def write(starts, count, length):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    library.run(ctypes.c_void_p(starts.data_ptr()), ctypes.c_int(count), ctypes.c_int(length), stream)


class ModelNew(nn.Module):
    starts = None

    def forward(self, q, k, v):
        heads, length, width = q.shape
        if self.starts is None:
            self.starts = torch.zeros(heads + 2, dtype=torch.int32, device=q.device)
        rows = [one.reshape(1, heads * length, 1, width) for one in (q, k, v)]
        write(self.starts, heads, length)
        out = torch.ops.aten._efficient_attention_forward(
            *rows, None, self.starts[:-1], self.starts[:-1], length, length, 0.0, 0, False, scale=0.125
        )[0]
        write(self.starts, heads, 0)
        return out.reshape(q.shape)
