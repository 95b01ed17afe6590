"""Falls back to torch when its kernel does not build.

layer: no_kernel
mechanism: try and except make every candidate correct.
problem: kernel_required/add
expected: build_error, rejected
device: cpu
timed: no
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

try:
    library = load_inline(name="broken", cpp_sources="this is no C++", no_implicit_headers=True, is_python_module=False)
except RuntimeError:
    library = None


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
