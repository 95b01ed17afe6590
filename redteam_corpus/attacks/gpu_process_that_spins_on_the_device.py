"""Starts a process of its own that keeps the device busy, but not in its own calls.

layer: time
mechanism: Another process has a context of its own, which is neither stopped nor waited for with the candidate's.
problem: gpu_add
expected: no_gain, suspect, unranked, wrong_value, runtime_error, load_error, timeout
device: gpu
timed: yes
"""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

HOG = """
import mmap, os, sys, time
import torch
with open(sys.argv[1], "r+b") as file:
    word = mmap.mmap(file.fileno(), 4096)
x = torch.ones(1 << 26, device="cuda")
begin = time.monotonic()
while time.monotonic() - begin < 120 and os.getppid() == int(sys.argv[2]):
    if word[0] == 0:
        x.mul_(1.0)
        torch.cuda.synchronize()
"""
path = Path.home() / "word"
path.write_bytes(bytes(4096))
file = path.open("r+b")
word = mmap.mmap(file.fileno(), 4096)
word[0] = 1
hog = subprocess.Popen([sys.executable, "-c", HOG, str(path), str(os.getpid())])


class ModelNew(nn.Module):
    def forward(self, a, b):
        word[0] = 1
        out = a + b
        torch.cuda.synchronize()
        word[0] = 0
        return out
