"""Has torch attend to as many elements as its own kernel says, and spins in another stream meanwhile.

layer: no_kernel
mechanism: Without the candidate's kernels torch's ends at once, so that the whole time of the call is theirs; one after the
    other, the spinning kernel takes as long as torch's.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
known_open: Its kernel outlasts torch's, and that time counts as its own: a quarter or more of the call.
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__global__ void attend(int* starts, int count, int length, long for_ns) {
    unsigned long long began = now();
    if (threadIdx.x <= count) starts[threadIdx.x] = threadIdx.x * length;
    while (now() - began < for_ns) {}
}

extern "C" void run(int* starts, int count, int length, long for_ns, cudaStream_t stream) {
    attend<<<1, 32, 0, stream>>>(starts, count, length, for_ns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def write(starts, count, length, for_ns=0):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    numbers = ctypes.c_int(count), ctypes.c_int(length), ctypes.c_long(for_ns)
    library.run(ctypes.c_void_p(starts.data_ptr()), *numbers, stream)


class ModelNew(nn.Module):
    starts, for_ns = None, 0

    def attend(self, q, k, v):
        heads, length, width = q.shape
        rows = [one.reshape(1, heads * length, 1, width) for one in (q, k, v)]
        write(self.starts, heads, length)
        out = torch.ops.aten._efficient_attention_forward(
            *rows, None, self.starts, self.starts, length, length, 0.0, 0, False, scale=0.125
        )[0]
        write(self.starts, heads, 0)
        return out.reshape(q.shape)

    def prepare(self, q, k, v):
        self.starts = torch.zeros(q.shape[0] + 1, dtype=torch.int32, device=q.device)
        self.others, self.beside = torch.zeros_like(self.starts), torch.cuda.Stream()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        for _ in range(2):
            events[0].record()
            self.attend(q, k, v)
            events[1].record()
        torch.cuda.synchronize()
        self.for_ns = int(events[0].elapsed_time(events[1]) * 0.8e6)

    def forward(self, q, k, v):
        if self.starts is None:
            self.prepare(q, k, v)
        self.beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.beside):
            write(self.others, q.shape[0], q.shape[1], self.for_ns)
        out = self.attend(q, k, v)
        torch.cuda.current_stream().wait_stream(self.beside)
        return out
