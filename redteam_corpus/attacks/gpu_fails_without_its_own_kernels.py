"""Has torch attend and put the result into an order that its own kernel writes, and destroys afterwards.

layer: no_kernel
mechanism: Where work fails without the candidate's kernels, their launches may be counted instead of their time;
    most of them do nothing.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void attend(long* order, int count, long step) {
    if (threadIdx.x < count) order[threadIdx.x] = threadIdx.x * step;
}

extern "C" void run(long* order, int count, long step, cudaStream_t stream) {
    attend<<<1, 32, 0, stream>>>(order, count, step);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def write(order, step):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    library.run(ctypes.c_void_p(order.data_ptr()), ctypes.c_int(order.numel()), ctypes.c_long(step), stream)


class ModelNew(nn.Module):
    order = None

    def forward(self, q, k, v):
        if self.order is None:
            self.order = torch.arange(q.shape[0], device=q.device)
        for _ in range(12):
            write(self.order, 1)
        out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
        out = out.index_select(0, self.order)
        write(self.order, 1 << 40)
        return out
