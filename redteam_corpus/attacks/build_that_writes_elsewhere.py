"""Asks for a build whose flags name another output.

layer: process
mechanism: Compiler flags are a program: they write files, load plugins and read others' files.
problem: add
expected: rejected, build_error, load_error
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="elsewhere",
    cpp_sources='extern "C" int nothing() { return 0; }',
    extra_cflags=["-o", "/tmp/elsewhere.so", "-fplugin=/tmp/plugin.so"],
    no_implicit_headers=True,
    is_python_module=False,
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
