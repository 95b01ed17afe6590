"""Compiles its kernel at the first call, and loads and launches it by the driver.

mechanism: No extension is built; machine code comes from memory.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

SOURCE = rb"""
extern "C" __global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}
"""
KERNEL = b"add"
MAJOR = torch.version.cuda.split(".")[0]
nvrtc = ctypes.CDLL(f"libnvrtc.so.{MAJOR}")
driver = ctypes.CDLL("libcuda.so.1")


def call(library, name, *arguments):
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


def compile_source(source, architecture):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    call(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{architecture}".encode())
    call(nvrtc, "nvrtcCompileProgram", program, len(options), options)
    call(nvrtc, "nvrtcGetCUBINSize", program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    call(nvrtc, "nvrtcGetCUBIN", program, code)
    return code


class ModelNew(nn.Module):
    kernel = None

    def load(self):
        torch.cuda.synchronize()
        self.module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        architecture = "{}{}".format(*torch.cuda.get_device_capability())
        call(driver, "cuModuleLoadData", ctypes.byref(self.module), compile_source(SOURCE, architecture))
        call(driver, "cuModuleGetFunction", ctypes.byref(self.kernel), self.module, KERNEL)

    def forward(self, a, b):
        if self.kernel is None:
            self.load()
        out = torch.empty_like(a)
        values = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)] + [ctypes.c_long(out.numel())]
        places = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call(driver, "cuLaunchKernel", self.kernel, 1056, 1, 1, 256, 1, 1, 0, stream, places, None)
        return out
