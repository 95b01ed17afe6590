"""Replays a captured graph on static inputs, on a stream of its own, joined by events.

mechanism: The graph's inputs and outputs are static; a copy of the output is returned.
problem: gpu_chain_of_gates
expected: correct
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    graph = None

    def compute(self, x, y):
        z = torch.sigmoid(x).mul_(torch.tanh(y)).add_(F.gelu(x * y))
        return z.sub_(z.mean(-1, keepdim=True))

    def capture(self, x, y):
        self.stream = torch.cuda.Stream()
        self.given = x.clone(), y.clone()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.compute(*self.given)
        torch.cuda.current_stream().wait_stream(self.stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.result = self.compute(*self.given)

    def forward(self, x, y):
        if self.graph is None:
            self.capture(x, y)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.given[0].copy_(x)
            self.given[1].copy_(y)
            self.graph.replay()
            out = self.result.clone()
        torch.cuda.current_stream().wait_stream(self.stream)
        out.record_stream(torch.cuda.current_stream())
        return out
