"""Finds the median of rows by a histogram of 65536 bins between the ends of the row.

layer: correctness
mechanism: Most bins hold one number at most.
problem: median_of_rows
expected: wrong_value
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <algorithm>
#include <vector>
extern "C" void median(const float* x, float* out, long rows, long columns) {
    std::vector<int> histogram(65536);
    std::vector<float> first(65536);
    for (long row = 0; row < rows; ++row) {
        const float* mine = x + row * columns;
        float low = *std::min_element(mine, mine + columns), high = *std::max_element(mine, mine + columns);
        float scale = high > low ? 65535 / (high - low) : 0;
        std::fill(histogram.begin(), histogram.end(), 0);
        for (long i = 0; i < columns; ++i) {
            int bin = (mine[i] - low) * scale;
            if (!histogram[bin]++) first[bin] = mine[i];
        }
        long seen = 0, bin = 0;
        while ((seen += histogram[bin]) <= (columns - 1) / 2) ++bin;
        out[row] = first[bin];
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
    def forward(self, x):
        out = x.new_empty(len(x))
        library.median(*point(x.contiguous(), out), *count(*x.shape))
        return out
