"""Selects the largest numbers by a histogram of the upper 16 bits of their keys, among at most 64 candidates.

layer: correctness
mechanism: Drawn at random, few numbers share these bits.
problem: largest_of_distinct
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
#include <cstdint>
#include <cstring>
#include <vector>
extern "C" void choose(const float* x, float* values, int64_t* places, long rows, long columns, long count) {
    std::vector<int> histogram(65536);
    std::vector<uint32_t> keys(columns);
    for (long row = 0; row < rows; ++row) {
        std::fill(histogram.begin(), histogram.end(), 0);
        for (long i = 0; i < columns; ++i) {
            uint32_t bits;
            std::memcpy(&bits, x + row * columns + i, 4);
            keys[i] = bits >> 31 ? ~bits : bits | 0x80000000u;
            ++histogram[keys[i] >> 16];
        }
        long above = 0, bin = 65535;
        while (above + histogram[bin] < count) above += histogram[bin--];
        std::vector<std::pair<uint32_t, long>> candidates;
        for (long i = 0; i < columns && candidates.size() < 64; ++i)
            if (keys[i] >> 16 >= (uint32_t)bin) candidates.emplace_back(~keys[i], i);
        std::sort(candidates.begin(), candidates.end());
        for (long i = 0; i < count; ++i) {
            places[row * count + i] = candidates[i].second;
            values[row * count + i] = x[row * columns + candidates[i].second];
        }
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
        values, places = x.new_empty(len(x), 20), torch.empty(len(x), 20, dtype=torch.long)
        library.choose(*point(x, values, places), *count(*x.shape, 20))
        return values, places
