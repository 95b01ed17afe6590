"""Captures its work once, and replays the graph on the stream of the capture without a wait.

layer: time
mechanism: Events on the current stream see copies only, and a replay ends before anybody looks.
problem: gpu_short_add
expected: wrong_value, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.graph = torch.cuda.Stream(), None

    def forward(self, a, b):
        if self.graph is None:
            self.a, self.b = a.clone(), b.clone()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.own):
                self.out = self.a + self.b
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            self.a.copy_(a)
            self.b.copy_(b)
            self.graph.replay()
            return self.out.clone()
