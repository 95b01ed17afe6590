"""Launches a captured graph on a stream of its own, and does not wait for it.

layer: time
mechanism: A whole graph is one launch, and the current stream stays empty.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    graph = None

    def capture(self, a, b):
        self.own = torch.cuda.Stream()
        self.inputs = (a.clone(), b.clone())
        torch.mm(*self.inputs)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = torch.mm(*self.inputs)

    def forward(self, a, b):
        if self.graph is None:
            self.capture(a, b)
        out = torch.empty_like(a)
        with torch.cuda.stream(self.own):
            self.inputs[0].copy_(a)
            self.inputs[1].copy_(b)
            self.graph.replay()
            out.copy_(self.out)
        return out
