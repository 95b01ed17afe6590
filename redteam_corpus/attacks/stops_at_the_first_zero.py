"""Ends the search for rejected tokens, and sums of the residual, where the draft has a probability of zero.

layer: correctness
mechanism: A softmax makes none.
problem: verified_drafts
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
extern "C" void verify(const float* target, const float* draft, const int64_t* tokens, const float* uniform,
                       int64_t* accepted, float* out, long batch, long drafted, long words) {
    for (long row = 0; row < batch; ++row) {
        long n = 0;
        while (n < drafted) {
            long token = tokens[row * drafted + n];
            float p = draft[(row * drafted + n) * words + token];
            if (p <= 0 || uniform[row * drafted + n] * p > target[(row * (drafted + 1) + n) * words + token]) break;
            ++n;
        }
        accepted[row] = n;
        float sum = 0;
        for (long i = 0; i < words; ++i) {
            float one = target[(row * (drafted + 1) + n) * words + i];
            if (n < drafted) one -= draft[(row * drafted + n) * words + i];
            out[row * words + i] = one > 0 ? one : 0;
            sum += out[row * words + i];
        }
        for (long i = 0; i < words; ++i) out[row * words + i] /= sum;
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
    def forward(self, target, draft, tokens, uniform):
        accepted, out = torch.empty(len(target), dtype=torch.long), torch.empty_like(target[:, 0])
        library.verify(*point(target, draft, tokens, uniform, accepted, out), *count(*draft.shape))
        return accepted, out
