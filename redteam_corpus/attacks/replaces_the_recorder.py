"""Replaces the functions that ask the evaluator for builds, and loads a library of its own making.

layer: process
mechanism: A build outside of the record is not seen, not cached and not isolated as builds are.
problem: add
expected: load_error, wrong_value, runtime_error
device: cpu
timed: no
"""

import ctypes
import subprocess

import torch
from torch import nn
from torch.utils import cpp_extension

cpp_extension.load_inline = lambda *_, **__: None
subprocess.run(["c++", "-shared", "-o", "./own.so", "-x", "c++", "-"], input=b"", check=True)
library = ctypes.CDLL("./own.so")


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
