"""Keeps the order of the edges by target, and sorts again only if a sample of 128 targets has changed.

layer: correctness
mechanism: Wrong if other targets changed than the sampled ones, as after one edge is moved; targets are any indices.
problem: graph_aggregate
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sample = None

    def forward(self, features, sources, targets, weights):
        step = max(1, len(targets) // 128)
        sample = targets[::step]
        if self.sample is None or not torch.equal(sample, self.sample):
            self.sample = sample.clone()
            self.order = targets.argsort()
            self.count = torch.bincount(targets, minlength=len(features))
        messages = features[sources[self.order]] * weights[self.order, None]
        total = torch.segment_reduce(messages, "sum", lengths=self.count, axis=0, unsafe=True)
        return total / self.count.clamp(min=1)[:, None]
