"""Starts threads of C++ in its function and joins them.

mechanism: Threads that begin and end in every call.
problem: large_add
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <thread>
#include <vector>
extern "C" void add(const float* a, const float* b, float* out, long count) {
    std::vector<std::thread> threads;
    long half = count / 2;
    for (long first : {0L, half})
        threads.emplace_back([=] {
            long last = first ? count : half;
            for (long i = first; i < last; ++i) out[i] = a[i] + b[i];
        });
    for (auto& thread : threads) thread.join();
}
"""
library = ctypes.CDLL(
    load_inline(name="threaded", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.add(*pointers, ctypes.c_long(out.numel()))
        return out
