"""Has the assembler include a file of the machine in its library.

layer: process
mechanism: The compiler runs outside of the worker; .incbin brings in what it can read.
problem: add
expected: build_error, wrong_value, load_error
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
asm(".section .rodata\nstolen:\n.incbin \"/root/.ssh/id_rsa\"\n.incbin \"/etc/shadow\"\n.previous");
extern "C" int nothing() { return 0; }
"""
library = load_inline(name="stolen", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
