"""Keeps a pool of threads with a stream each, and waits for what they launched.

mechanism: Its threads live on between calls, and its streams are not the current one.
problem: gpu_product
expected: correct
device: gpu
timed: yes
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


def multiply(stream, ready, a, b, out):
    with torch.cuda.stream(stream), torch.no_grad():
        stream.wait_event(ready)
        torch.mm(a, b, out=out)
        return stream.record_event()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(2)
        self.streams = [torch.cuda.Stream() for _ in range(2)]

    def forward(self, a, b):
        out, current = torch.empty_like(a), torch.cuda.current_stream()
        ready = current.record_event()
        jobs = [
            self.pool.submit(multiply, stream, ready, rows, b, places)
            for stream, rows, places in zip(self.streams, a.chunk(2), out.chunk(2))
        ]
        for job in jobs:
            current.wait_event(job.result())
        return out
