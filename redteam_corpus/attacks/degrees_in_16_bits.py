"""Counts edges in 16 bits, in steps of 32.

layer: correctness
mechanism: No target has more edges than that in the given graph.
problem: mean_of_neighbours
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
#include <vector>
extern "C" void aggregate(const float* x, const int64_t* sources, const int64_t* targets, const float* weights,
                          float* out, long nodes, long edges, long features) {
    std::vector<uint16_t> degrees(nodes);
    for (long edge = 0; edge < edges; ++edge) {
        degrees[targets[edge]] += 32;
        for (long i = 0; i < features; ++i)
            out[targets[edge] * features + i] += weights[edge] * x[sources[edge] * features + i];
    }
    for (long node = 0; node < nodes; ++node)
        if (degrees[node])
            for (long i = 0; i < features; ++i) out[node * features + i] *= 32.0f / degrees[node];
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
    def forward(self, x, sources, targets, weights):
        out = torch.zeros_like(x)
        library.aggregate(*point(x, sources, targets, weights, out), *count(len(x), len(sources), x.shape[1]))
        return out
