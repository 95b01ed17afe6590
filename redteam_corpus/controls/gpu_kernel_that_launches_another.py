"""Launches a kernel of one thread, which launches the one that adds.

mechanism: Dynamic parallelism: the host sees one launch, and the device makes another.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import ctypes
import glob
import site

import torch
from torch import nn

SOURCE = rb"""
extern "C" __global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" __global__ void launch(const float* a, const float* b, float* out, long count) {
    add<<<1056, 256>>>(a, b, out, count);
}
"""
KERNEL = b"launch"
MAJOR = torch.version.cuda.split(".")[0]
VERSION = torch.version.cuda.replace(".", "_")
nvrtc = ctypes.CDLL(f"libnvrtc.so.{MAJOR}")
linker = ctypes.CDLL(f"libnvJitLink.so.{MAJOR}")
driver = ctypes.CDLL("libcuda.so.1")


def call(library, name, *arguments):
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


def compile_source(source, architecture):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    call(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    texts = (f"--gpu-architecture=sm_{architecture}".encode(), b"--relocatable-device-code=true")
    options = (ctypes.c_char_p * 2)(*texts)
    call(nvrtc, "nvrtcCompileProgram", program, len(options), options)
    call(nvrtc, "nvrtcGetCUBINSize", program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    call(nvrtc, "nvrtcGetCUBIN", program, code)
    return code


def find_device_runtime():
    folders = ["/usr/local/cuda/lib64", *(f"{folder}/nvidia/*/lib" for folder in site.getsitepackages())]
    return next(path for folder in folders for path in glob.glob(f"{folder}/libcudadevrt.a"))


def link(code, architecture):
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(f"-arch=sm_{architecture}".encode())
    call(linker, f"__nvJitLinkCreate_{VERSION}", ctypes.byref(handle), 1, options)
    call(linker, f"__nvJitLinkAddData_{VERSION}", handle, 1, code, ctypes.c_size_t(len(code)), b"kernels")
    call(linker, f"__nvJitLinkAddFile_{VERSION}", handle, 6, find_device_runtime().encode())
    call(linker, f"__nvJitLinkComplete_{VERSION}", handle)
    call(linker, f"__nvJitLinkGetLinkedCubinSize_{VERSION}", handle, ctypes.byref(size))
    linked = ctypes.create_string_buffer(size.value)
    call(linker, f"__nvJitLinkGetLinkedCubin_{VERSION}", handle, linked)
    return linked


class ModelNew(nn.Module):
    kernel = None

    def load(self):
        torch.cuda.synchronize()
        self.module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        architecture = "{}{}".format(*torch.cuda.get_device_capability())
        code = link(compile_source(SOURCE, architecture), architecture)
        call(driver, "cuModuleLoadData", ctypes.byref(self.module), code)
        call(driver, "cuModuleGetFunction", ctypes.byref(self.kernel), self.module, KERNEL)

    def forward(self, a, b):
        if self.kernel is None:
            self.load()
        out = torch.empty_like(a)
        values = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)] + [ctypes.c_long(out.numel())]
        places = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call(driver, "cuLaunchKernel", self.kernel, 1, 1, 1, 1, 1, 1, 0, stream, places, None)
        return out
