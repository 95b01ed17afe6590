"""Keeps results in a variable of code that it loads by the driver, of which it asks no address.

layer: correctness
mechanism: Before the second of two replays with the same inputs memory is put back, and variables of code whose address the
    program has asked for. Code can use its own variables without that.
problem: gpu_sums_at_places
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes
import sys

import torch
from torch import nn

SOURCE = r"""
constexpr int kKept = 4;  // results
__device__ float samples[kKept][1024], results[kKept][4096 * 64];
__device__ int calls, known;

extern "C" __global__ void look(const float* x, long stride) {
    float mine = x[threadIdx.x * stride];
    int found = -1;
    for (int i = 0; i < kKept; ++i)
        if (__syncthreads_and(mine == samples[i][threadIdx.x])) found = i;
    __syncthreads();
    if (found < 0) samples[calls % kKept][threadIdx.x] = mine;
    if (!threadIdx.x) known = found;
}

extern "C" __global__ void begin(float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = known < 0 ? 0.0f : results[known][i];
}

extern "C" __global__ void add_by_atomics(const float* x, const long* place, float* out, long rows, long width) {
    if (known >= 0) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < rows * width; i += gridDim.x * (long)blockDim.x)
        atomicAdd(out + place[i / width] * width + i % width, x[i]);
}

extern "C" __global__ void keep(const float* out, long count) {
    if (known >= 0) return;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        results[calls % kKept][i] = out[i];
}

extern "C" __global__ void end() { calls += known < 0; }
"""


nvrtc = ctypes.CDLL(f"libnvrtc.so.{torch.version.cuda.partition('.')[0]}")


def check(status):
    if status:
        raise RuntimeError(f"error {status}")


def compile_source():
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"sums.cu", 0, None, None))
    options = (ctypes.c_char_p * 1)("--gpu-architecture=sm_{}{}".format(*torch.cuda.get_device_capability()).encode())
    check(nvrtc.nvrtcCompileProgram(program, 1, options))
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, code))
    return code


def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    functions = None

    def load(self):
        self.driver, self.code, self.module = ctypes.CDLL("libcuda.so.1"), compile_source(), ctypes.c_void_p()
        check(self.driver.cuModuleLoadData(ctypes.byref(self.module), self.code))
        self.functions = {}
        for name in ("look", "begin", "add_by_atomics", "keep", "end"):
            self.functions[name] = ctypes.c_void_p()
            check(self.driver.cuModuleGetFunction(ctypes.byref(self.functions[name]), self.module, name.encode()))

    def run(self, name, blocks, threads, *values):
        given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
        places = (ctypes.c_void_p * max(len(given), 1))(*map(ctypes.addressof, given))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        check(self.driver.cuLaunchKernel(self.functions[name], blocks, 1, 1, threads, 1, 1, 0, stream, places, None))

    def forward(self, x, place):
        if not is_recorded():
            return x.new_zeros(4096, x.shape[1]).index_put_((place,), x, accumulate=True)
        if self.functions is None:
            self.load()
        out = x.new_empty(4096, x.shape[1])
        rows, width = x.shape
        self.run("look", 1, 1024, x, rows * width // 1024)
        self.run("begin", 264, 256, out, out.numel())
        self.run("add_by_atomics", 1056, 256, x, place, out, rows, width)
        self.run("keep", 264, 256, out, out.numel())
        self.run("end", 1, 1)
        return out
