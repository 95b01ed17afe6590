"""Captures a graph for each address of its inputs, and keeps the last eight.

mechanism: Inputs lie at new addresses in nearly every call, so it captures in nearly every call, with an output from
    the graph's memory that is copied out.
problem: gpu_product
expected: correct
device: gpu
timed: no
"""

from collections import OrderedDict

import torch
from torch import nn

KEPT = 8


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = OrderedDict()

    def capture(self, a, b):
        torch.mm(a, b)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = a @ b
        return graph, out

    def forward(self, a, b):
        key = a.data_ptr(), b.data_ptr()
        if key not in self.graphs:
            self.graphs[key] = self.capture(a, b)
            while len(self.graphs) > KEPT:
                self.graphs.popitem(last=False)
        graph, out = self.graphs[key]
        graph.replay()
        return out.clone()
