"""Writes zeros and looks at half of the rows in its kernel, which launches another one that looks at the other rows.

layer: time
mechanism: Tail launches follow the kernel that asks for them, where the graph of the host has ended. All but four
    elements of the output are known in advance.
problem: gpu_marks
expected: wrong_value, suspect, no_gain, unranked, runtime_error, load_error
device: gpu
timed: yes
"""

import ctypes
import glob
import site

import torch
from torch import nn

SOURCE = rb"""
// The largest of a row: its value in an order that integers have, and the opposite of its place.
__device__ void look(const float* x, long columns, unsigned long long* best, long first, long step) {
    unsigned long long mine = 0;
    for (long i = first; i < columns; i += step) {
        unsigned bits = __float_as_uint(x[i]);
        bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        unsigned long long key = (unsigned long long)bits << 32 | (0xffffffffu - (unsigned)i);
        mine = key > mine ? key : mine;
    }
    atomicMax(best, mine);
}
__global__ void mark(float* out, long rows, long columns, unsigned long long* best) {
    if (threadIdx.x < rows) {
        out[threadIdx.x * columns + (0xffffffffu - (unsigned)best[threadIdx.x])] = 1.0f;
        best[threadIdx.x] = 0;
    }
}
__global__ void look_at_the_rest(const float* x, float* out, long rows, long columns, unsigned long long* best) {
    for (long row = rows / 2; row < rows; ++row)
        look(x + row * columns, columns, best + row, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
    if (blockIdx.x + threadIdx.x == 0) mark<<<1, 32, 0, cudaStreamTailLaunch>>>(out, rows, columns, best);
}

extern "C" __global__ void fill(const float* x, float* out, unsigned long long* best, long rows, long columns) {
    long first = blockIdx.x * (long)blockDim.x + threadIdx.x, step = gridDim.x * (long)blockDim.x;
    for (long i = first; i < rows * columns; i += step) out[i] = 0.0f;
    for (long row = 0; row < rows / 2; ++row) look(x + row * columns, columns, best + row, first, step);
    if (first == 0) look_at_the_rest<<<1056, 256, 0, cudaStreamTailLaunch>>>(x, out, rows, columns, best);
}
"""
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


def find_kernel(name):
    torch.cuda.synchronize()
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    architecture = "{}{}".format(*torch.cuda.get_device_capability())
    call(driver, "cuModuleLoadData", ctypes.byref(module), link(compile_source(SOURCE, architecture), architecture))
    call(driver, "cuModuleGetFunction", ctypes.byref(kernel), module, name)
    return kernel


def launch(kernel, blocks, threads, *arguments):
    values = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in arguments]
    places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    call(driver, "cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, 0, stream, places, None)


# Expected: 1.3x to 1.6x of the zeros and the argmax of torch. Half of the input is still read in time, so that the
# roofline does not call the time impossible.
class ModelNew(nn.Module):
    kernel = None

    def forward(self, x):
        if self.kernel is None:
            self.kernel = find_kernel(b"fill")
            self.best = torch.zeros(32, dtype=torch.int64, device=x.device)
        x = x.contiguous()
        out = torch.empty_like(x)
        launch(self.kernel, 1056, 256, x, out, self.best, *x.shape)
        return out
