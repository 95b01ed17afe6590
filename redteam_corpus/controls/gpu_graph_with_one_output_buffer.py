"""Replays a captured graph and returns its static output.

mechanism: Every call returns the same memory, which changes with the next one.
problem: gpu_chain_of_gates
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    graph = None

    def compute(self, x, y):
        z = torch.sigmoid(x).mul_(torch.tanh(y)).add_(F.gelu(x * y))
        return z.sub_(z.mean(-1, keepdim=True))

    def capture(self, x, y):
        self.given = x.clone(), y.clone()
        self.compute(*self.given)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = self.compute(*self.given)

    def forward(self, x, y):
        if self.graph is None:
            self.capture(x, y)
        self.given[0].copy_(x)
        self.given[1].copy_(y)
        self.graph.replay()
        return self.result
