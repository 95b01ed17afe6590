"""Has its build print a line that takes for ever to look at.

layer: process
mechanism: An expression with two ways to match the same letters takes exponential or quadratic time on text made
    for that.
problem: add
expected: build_error, rejected, load_error
device: cpu
timed: no
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = "#include <cstdio>\n#error " + "/build-" * 70_000 + "\n"
load_inline(name="slow", cpp_sources=SOURCE, functions=["f"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a - b
