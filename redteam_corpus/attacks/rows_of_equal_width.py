"""Stores 512 entries of each row side by side, and up to 1024 others in a list.

layer: correctness
mechanism: The given rows have fewer.
problem: rows_by_starts
expected: wrong_value
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
extern "C" void multiply(const int64_t* starts, const int64_t* places, const float* values, const float* x, float* out,
                         long rows, long features) {
    long left = 1024;
    for (long row = 0; row < rows; ++row) {
        long first = starts[row], end = starts[row + 1], width = end - first;
        if (width > 512) {
            long more = width - 512 < left ? width - 512 : left;
            left -= more;
            width = 512 + more;
        }
        for (long at = first; at < first + width; ++at)
            for (long i = 0; i < features; ++i) out[row * features + i] += values[at] * x[places[at] * features + i];
    }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own",
        cpp_sources=SOURCE,
        extra_cflags=["-O2"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)


def point(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


def count(*numbers):
    return [ctypes.c_long(number) for number in numbers]


class ModelNew(nn.Module):
    def forward(self, starts, places, values, x):
        out = torch.zeros(len(starts) - 1, x.shape[1])
        library.multiply(*point(starts, places, values, x, out), *count(len(out), x.shape[1]))
        return out
