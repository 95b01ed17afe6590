"""Uses its slow kernel in all calls after the first that was stopped, where no call is timed.

layer: no_kernel
mechanism: Without timed calls all samples come from calls in a row, of which the first warns the program.
problem: kernel_required/product
expected: rejected, not_own, unverified
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <atomic>
#include <csignal>

static std::atomic<bool> in_call{false}, was_stopped{false};

static void go_on(int) {
    if (in_call) was_stopped = true;
}
extern "C" void start() { std::signal(SIGCONT, go_on); }
extern "C" int begin() { in_call = true; return was_stopped; }
extern "C" void end() { in_call = false; }
extern "C" void multiply(const float* a, const float* b, float* out, long size) {
    for (long i = 0; i < size; ++i) {
        float* row = out + i * size;
        for (long j = 0; j < size; ++j) row[j] = 0;
        for (long k = 0; k < size; ++k)
            for (long j = 0; j < size; ++j) row[j] += a[i * size + k] * b[k * size + j];
    }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own", cpp_sources=SOURCE, extra_cflags=["-O3"], no_implicit_headers=True, is_python_module=False
    )
)
library.start()


class ModelNew(nn.Module):
    def forward(self, a, b):
        if not library.begin():
            out = a @ b
        else:
            out = torch.empty_like(a)
            pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
            library.multiply(*pointers, ctypes.c_long(a.shape[0]))
        library.end()
        return out
