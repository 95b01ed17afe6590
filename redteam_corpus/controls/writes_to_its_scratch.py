"""Writes, reads and removes files in its working folder.

mechanism: Files left between calls could be a cache of results.
problem: add
expected: correct
device: cpu
timed: no
"""

import os
import tempfile

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        with tempfile.NamedTemporaryFile(suffix=".pt") as file:
            torch.save(a, file.name)
            restored = torch.load(file.name)
        with open("note.txt", "w") as note:
            note.write(str(os.getpid()))
        return restored + b
