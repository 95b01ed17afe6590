"""Captures a graph at its first call and replays it, with its first inputs and one output.

layer: time
mechanism: A replay costs one launch; who does not notice that inputs moved and outputs are the same buffer is
    fooled.
problem: gpu_add
expected: wrong_value
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    graph = None

    def forward(self, a, b):
        if self.graph is None:
            self.inputs = (a.clone(), b.clone())
            torch.add(*self.inputs)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = torch.add(*self.inputs)
        self.graph.replay()
        return self.out
