"""Creates the memory of its outputs itself, and maps it, by the driver's virtual memory management.

mechanism: Its outputs lie in memory of no allocator.
problem: gpu_concatenation
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda.h>

__global__ void join(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < 2 * count; i += gridDim.x * (long)blockDim.x)
        out[i] = i < count ? a[i] : b[i - count];
}

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    join<<<1056, 256, 0, stream>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
driver = ctypes.CDLL("libcuda.so.1")


class Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location", ctypes.c_int),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class Access(ctypes.Structure):
    _fields_ = (("location_type", ctypes.c_int), ("location", ctypes.c_int), ("flags", ctypes.c_int))


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed with {status}")


def create(size):
    address, handle = ctypes.c_ulonglong(), ctypes.c_ulonglong()
    none, zero, rounded = ctypes.c_ulonglong(0), ctypes.c_size_t(0), ctypes.c_size_t(-(-size // (2 << 20)) * (2 << 20))
    properties, access = Properties(1, 0, 1, 0), Access(1, 0, 3)
    call("cuMemCreate", ctypes.byref(handle), rounded, ctypes.byref(properties), none)
    call("cuMemAddressReserve", ctypes.byref(address), rounded, zero, none, none)
    call("cuMemMap", address, rounded, zero, handle, none)
    call("cuMemSetAccess", address, rounded, ctypes.byref(access), ctypes.c_size_t(1))
    return address.value


class ModelNew(nn.Module):
    address = size = 0

    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        torch.empty(1, device=a.device)
        if self.size != a.nbytes + b.nbytes:
            self.size = a.nbytes + b.nbytes
            self.address = create(self.size)
        storage = torch._C._construct_storage_from_data_pointer(self.address, a.device, self.size)
        out = a.new_empty(0).set_(storage, 0, (a.shape[0] + b.shape[0], a.shape[1]), a.stride())
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(a.numel()), stream)
        return out
