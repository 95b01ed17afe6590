"""Puts a finder of its own before all others and clears what was imported.

layer: process
mechanism: Modules that the evaluator imports later in this process are the candidate's.
problem: add
expected: wrong_value, runtime_error, load_error
device: cpu
timed: no
"""

import sys
from importlib.abc import MetaPathFinder

import torch
from torch import nn


class Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(0)


sys.meta_path.insert(0, Finder())
for name in [name for name in sys.modules if name.startswith(("harness", "json", "struct"))]:
    del sys.modules[name]


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
