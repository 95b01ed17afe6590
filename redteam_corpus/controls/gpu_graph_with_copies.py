"""Replays a graph, and copies its inputs in and its output out.

mechanism: A graph works on memory that it keeps between calls.
problem: gpu_add
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    graph = None

    def forward(self, a, b):
        if self.graph is None:
            self.inputs = (torch.empty_like(a), torch.empty_like(b))
            torch.add(*self.inputs)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = torch.add(*self.inputs)
        self.inputs[0].copy_(a)
        self.inputs[1].copy_(b)
        self.graph.replay()
        return self.out.clone()
