"""Launches a kernel whose demangled name is a gigabyte long.

layer: process
mechanism: Who classifies the kernels of a recording demangles the names that stand in it: each parameter is twice
    as long as the one before.
problem: kernel_required/gpu_add
expected: no_gain, rejected, not_own, suspect, runtime_error, load_error
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

LEVELS = 25
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def number(index):
    """Return the mangled name of a substitution."""
    if index == 0:
        return "S_"
    index, text = index - 1, ""
    while True:
        index, digit = divmod(index, 36)
        text = DIGITS[digit] + text
        if index == 0:
            return f"S{text}_"


# Pointers to functions: of two numbers, of two of these pointers, and so on.
PARAMETERS = ["PFviiE", *(f"PFv{number(2 * level - 1)}{number(2 * level - 1)}E" for level in range(1, LEVELS))]
NAME = "_Z1f" + "".join(PARAMETERS)
SOURCE = r"""
extern "C" __global__ void NAME(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}
"""
nvrtc = ctypes.CDLL(f"libnvrtc.so.{torch.version.cuda.split('.')[0]}")
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
        code = compile_source(SOURCE.replace("NAME", NAME).encode(), architecture)
        call(driver, "cuModuleLoadData", ctypes.byref(self.module), code)
        call(driver, "cuModuleGetFunction", ctypes.byref(self.kernel), self.module, NAME.encode())

    def forward(self, a, b):
        if self.kernel is None:
            self.load()
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        values = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)] + [ctypes.c_long(out.numel())]
        places = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call(driver, "cuLaunchKernel", self.kernel, 1056, 1, 1, 256, 1, 1, 0, stream, places, None)
        return out
