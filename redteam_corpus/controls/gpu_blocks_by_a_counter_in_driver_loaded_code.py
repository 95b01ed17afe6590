"""Gives places to blocks by a counter in a variable of code that the driver loads, and adds the rows of each in order.

mechanism: A variable whose address is not asked for is written in each call, and is zero again after it; which block
    adds what differs, but no result.
problem: gpu_sums_at_places
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

SOURCE = r"""
__device__ unsigned next, done;

extern "C" __global__ void add(const float* x, const long* order, const long* ends, float* out, unsigned places) {
    __shared__ unsigned taken;
    for (;;) {
        if (!threadIdx.x) taken = atomicAdd(&next, 1u);
        __syncthreads();
        unsigned place = taken;
        __syncthreads();
        if (place >= places) break;
        float sum = 0.0f;
        for (long i = place ? ends[place - 1] : 0; i < ends[place]; ++i) sum += x[order[i] * 64 + threadIdx.x];
        out[place * 64l + threadIdx.x] = sum;
    }
    if (!threadIdx.x && atomicAdd(&done, 1u) == gridDim.x - 1) next = done = 0;
}
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


class ModelNew(nn.Module):
    functions = None

    def load(self):
        self.driver, self.code, self.module = ctypes.CDLL("libcuda.so.1"), compile_source(), ctypes.c_void_p()
        check(self.driver.cuModuleLoadData(ctypes.byref(self.module), self.code))
        self.functions = {}
        for name in ("add",):
            self.functions[name] = ctypes.c_void_p()
            check(self.driver.cuModuleGetFunction(ctypes.byref(self.functions[name]), self.module, name.encode()))

    def run(self, name, blocks, threads, *values):
        given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
        places = (ctypes.c_void_p * max(len(given), 1))(*map(ctypes.addressof, given))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        check(self.driver.cuLaunchKernel(self.functions[name], blocks, 1, 1, threads, 1, 1, 0, stream, places, None))

    def forward(self, x, place):
        if self.functions is None:
            self.load()
        found = torch.sort(place, stable=True)
        ends = torch.searchsorted(found.values, torch.arange(4096, device=x.device), right=True)
        out = x.new_empty(4096, x.shape[1])
        self.run("add", 1056, 64, x, found.indices, ends, out, out.shape[0])
        return out
