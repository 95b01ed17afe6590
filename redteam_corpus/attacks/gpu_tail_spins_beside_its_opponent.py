"""Has torch multiply, and leaves a kernel behind that sleeps on the device for a second after each replay.

layer: time
mechanism: A tail launch goes on when the replay has ended. The device then divides its time between the process that
    it belongs to and the one that replays the baseline, alone or in turn; in its own process it takes one warp.
problem: gpu_long_product
expected: no_gain, suspect, unranked, runtime_error, load_error
device: gpu
timed: yes
language: torch
"""

import ctypes
import glob
import site

import torch
from torch import nn

SOURCE = rb"""
__device__ int here;  // launches in this process

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}
__global__ void stay(long nanoseconds) {
    for (unsigned long long begin = now(); now() - begin < nanoseconds;) __nanosleep(200);
}

extern "C" __global__ void leave(int* calls, long nanoseconds) {
    bool is_replayed = here < *calls;
    ++here, ++*calls;
    if (is_replayed) stay<<<1, 32, 0, cudaStreamTailLaunch>>>(nanoseconds);
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


# Expected: up to 2x for the library's own product. Both the baseline's time beside the candidate and that alone, which
# is taken after the first replays of both, contain time slices of the sleeping kernel.
class ModelNew(nn.Module):
    kernel = None

    def forward(self, a, b):
        if self.kernel is None:
            self.kernel = find_kernel(b"leave")
            self.calls = torch.zeros(1, dtype=torch.int32, device=a.device)
        out = a @ b
        launch(self.kernel, 1, 1, self.calls, 1_000_000_000)
        return out
