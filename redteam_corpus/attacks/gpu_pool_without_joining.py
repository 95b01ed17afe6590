"""Hands its work to a pool of threads, each with a stream of its own, and returns at once.

layer: time
mechanism: A device has nothing to wait for before the threads have launched anything.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

pool = ThreadPoolExecutor(4)


def multiply(stream, a, b, out):
    with torch.cuda.stream(stream), torch.no_grad():
        torch.mm(a, b, out=out)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream() for _ in range(4)]

    def forward(self, a, b):
        out = torch.empty_like(a)
        for stream, rows, places in zip(self.streams, a.chunk(4), out.chunk(4)):
            pool.submit(multiply, stream, rows, b, places)
        return out
