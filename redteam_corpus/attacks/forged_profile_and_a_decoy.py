"""Answers the question whose code runs with a list of its own, and calls a function of its own for one row.

layer: no_kernel
mechanism: The profiler runs in the candidate's process; that calls run own code as well is true.
problem: kernel_required/product
expected: rejected, not_own
device: cpu
timed: no
"""

import ctypes

from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.instrumentation import Observer

SOURCE = r"""
extern "C" void copy_row(const float* from, float* to, long count) {
    for (long i = 0; i < count; ++i) to[i] = from[i];
}
"""
library = ctypes.CDLL(load_inline(name="rows", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False))


def profile(self, call, device):
    return {"total_us": 10.0, "host": [["own::product", 9.9]], "kernels": [], "libraries": ["/tmp/rows.so"]}


Observer.profile = profile


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a @ b
        pointer = ctypes.c_void_p(out.data_ptr())
        library.copy_row(pointer, pointer, ctypes.c_long(out.shape[1]))
        return out
