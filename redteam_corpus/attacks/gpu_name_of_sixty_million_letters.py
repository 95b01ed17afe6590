"""Lengthens the name of its kernel in its recording by a zero byte and sixty million letters.

layer: process
mechanism: The driver reads the name up to the zero byte; the evaluator searches all of it for names of libraries.
problem: gpu_short_add
expected: no_gain
device: gpu
timed: yes
"""

import ctypes
import json
import os

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.recorder import driver_calls

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
record = driver_calls.CallRecorder.record


def record_with_long_names(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    found = json.loads(os.pread(descriptors[0], os.fstat(descriptors[0]).st_size, 0))
    for function in found["functions"]:
        function["name"] += "\0" + "sm1 " * 15_000_000
    text = json.dumps(found).encode()
    os.ftruncate(descriptors[0], 0)
    while text:
        text = text[os.write(descriptors[0], text) :]
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_with_long_names


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
