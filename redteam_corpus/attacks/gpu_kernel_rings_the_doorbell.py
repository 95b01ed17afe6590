"""Has its kernel's last block answer the call, in the page of host memory that both processes watch.

layer: time
mechanism: The answer comes from the device, before the process knows that the kernel is over, and without its
    overhead.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked, runtime_error, load_error
device: gpu
timed: yes
"""

import ctypes
import gc

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

typedef unsigned long long word_t;

__global__ void add(const float* a, const float* b, float* out, long count, volatile word_t* words, unsigned* done) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(done, 1) == gridDim.x - 1) {
        *done = 0;
        words[9] = 1;
        words[16] = (word_t)out;
        __threadfence_system();
        words[8] = words[0];
    }
}

extern "C" void run(const float* a, const float* b, float* out, long count, word_t* words, unsigned* done) {
    add<<<1056, 256>>>(a, b, out, count, words, done);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
driver = ctypes.CDLL("libcuda.so.1")
library.run.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_long, *[ctypes.c_void_p] * 2)
bell = next(item for item in gc.get_objects() if type(item).__name__ == "Doorbell")


def register(words):
    """The page's address on the device."""
    begin, place = ctypes.addressof(ctypes.c_char.from_buffer(words)), ctypes.c_uint64()
    driver.cuMemHostRegister_v2(ctypes.c_void_p(begin), ctypes.c_size_t(4096), 2)
    if driver.cuMemHostGetDevicePointer_v2(ctypes.byref(place), ctypes.c_void_p(begin), 0) != 0:
        raise RuntimeError("the page is not mapped on the device")
    return place.value


class ModelNew(nn.Module):
    page = None

    def forward(self, a, b):
        if self.page is None:
            self.page = register(bell._words)
            self.done = torch.zeros(1, dtype=torch.int32, device=a.device)
        out = torch.empty_like(a)
        places = [tensor.data_ptr() for tensor in (a, b, out)]
        library.run(*places, out.numel(), self.page, self.done.data_ptr())
        return out
