"""Has a kernel whose threads' stacks take nearly all device memory wherever it is loaded.

layer: process
mechanism: The replayer allocates the stacks when the recorded call is loaded, beside everything that the evaluator needs
    for its inputs and comparisons, and the evaluator runs out of memory.
problem: gpu_short_add
expected: suspect, no_gain, unranked, runtime_error, out_of_memory
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

SOURCE = rb"""
extern "C" __global__ void add(const float* a, const float* b, float* out, long count) {
    volatile char stack[STACK];
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        if (count < 0) stack[i % STACK] = 1;
        out[i] = a[i] + b[i] + (count < 0 ? stack[i % 7] : 0);
    }
}
"""
MAJOR = torch.version.cuda.split(".")[0]
nvrtc = ctypes.CDLL(f"libnvrtc.so.{MAJOR}")
driver = ctypes.CDLL("libcuda.so.1")
LEFT_BYTES = 3 << 29  # for the first call; nobody knows how much the others need


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
        properties = torch.cuda.get_device_properties(0)
        threads = properties.multi_processor_count * properties.max_threads_per_multi_processor
        stack = (torch.cuda.mem_get_info()[0] - LEFT_BYTES) // threads
        stack = max(min(stack, 510 << 10), 1 << 10) // 1024 * 1024
        self.module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        architecture = "{}{}".format(*torch.cuda.get_device_capability())
        source = SOURCE.replace(b"STACK", str(stack).encode())
        call(driver, "cuModuleLoadData", ctypes.byref(self.module), compile_source(source, architecture))
        call(driver, "cuModuleGetFunction", ctypes.byref(self.kernel), self.module, b"add")

    def forward(self, a, b):
        if self.kernel is None:
            self.load()
        out = torch.empty_like(a)
        values = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)] + [ctypes.c_long(out.numel())]
        places = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call(driver, "cuLaunchKernel", self.kernel, 1056, 1, 1, 256, 1, 1, 0, stream, places, None)
        return out
