"""Makes its build take as long as it likes.

layer: process
mechanism: Time that is spent in a compiler is nobody's; templates compute there.
problem: add
expected: build_error, wrong_value, load_error
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = "constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
SOURCE += 'constexpr long value = f(60);\nextern "C" long result() { return value; }'
library = load_inline(name="constant", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
