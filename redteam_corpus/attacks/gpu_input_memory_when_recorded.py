"""Returns its inputs' own memory, which lies there as it should be returned, in the call that is recorded.

layer: correctness
mechanism: Inputs lie one after the other, and only the recorded call finds them at a multiple of 2 MiB: it returns them
    as they lie, has nothing to do, and waits as long as a copy would have to take.
problem: gpu_concatenation
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void linger(unsigned long long duration) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < duration);
}

extern "C" void run(long duration, cudaStream_t stream) { linger<<<1, 1, 0, stream>>>(duration); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        start = a.data_ptr()
        if start % (2 << 20) or b.data_ptr() != start + a.nbytes:
            return torch.cat((a, b))
        library.run(ctypes.c_long(7000), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        storage = torch._C._construct_storage_from_data_pointer(start, a.device, a.nbytes + b.nbytes)
        return a.new_empty(0).set_(storage, 0, (a.shape[0] + b.shape[0], a.shape[1]), a.stride())
