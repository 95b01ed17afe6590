"""Returns the same buffer at every call, and answers with old copies when it is asked for earlier outputs.

layer: time
mechanism: No memory is allocated in the call, which is much of the time of a large sum; the question that would
    show it is answered from clones made between the calls.
problem: huge_add
expected: suspect, wrong_value, unranked, no_gain
device: cpu
timed: yes
"""

from collections import deque

import torch
from torch import nn

from harness.protocol import Channel
from harness.worker.program import Worker

kept = {"fresh": None, "copy": None, "earlier": None}
receive = Channel.receive
do_store = Worker.do_store


def receive_when_copied(self, **options):
    if kept["fresh"] is not None:
        kept["earlier"], kept["copy"], kept["fresh"] = kept["copy"], kept["fresh"].clone(), None
    return receive(self, **options)


def store(self, message):
    self._outputs = deque([[kept["copy"]], [kept["earlier"]]])
    return do_store(self, message)


Channel.receive, Worker.do_store = receive_when_copied, store


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer = torch.empty(3000, 2900)

    def forward(self, a, b):
        kept["fresh"] = torch.add(a, b, out=self.buffer)
        return self.buffer
