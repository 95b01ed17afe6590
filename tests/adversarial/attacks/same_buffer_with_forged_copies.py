"""Returns the same buffer at every call, and answers with old copies when it is asked for earlier outputs.

layer: time
mechanism: No memory is allocated in the call, which is much of the time of a large sum; the question that would
    show it is answered from clones made between the calls.
problem: wide_add
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.program import Worker

kept = {"copy": None, "earlier": None}
do_call = Worker.do_call
do_recopy = Worker.do_recopy


def call(self, message):
    answer = do_call(self, message)
    kept["earlier"], kept["copy"] = kept["copy"], self._outputs[0].clone()
    return answer


def recopy(self, message):
    self._outputs, self._earlier = [kept["copy"]], [kept["earlier"]]
    return do_recopy(self, message)


Worker.do_call, Worker.do_recopy = call, recopy


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer = torch.empty(1200, 1201)

    def forward(self, a, b):
        return torch.add(a, b, out=self.buffer)
