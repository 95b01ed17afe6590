"""Has the assembler print that the compiler was killed, and fail.

layer: process
mechanism: A compiler that ran out of memory is the machine's fault, which counts against nobody; what is printed
    while a source is compiled may be the candidate's own text.
problem: add
expected: build_error, rejected, load_error
device: cpu
timed: no
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

WORDS = "g++: fatal error: Killed signal terminated program cc1plus"
SOURCE = f'asm(".print \\"{WORDS}\\"\\n.err");\nextern "C" void f() {{}}\n'
load_inline(name="killed", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a - b
