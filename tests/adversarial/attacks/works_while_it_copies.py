"""Writes into the judge's buffer itself, and does half of the work in the time that copying takes others.

layer: time
mechanism: The second clock allows for copying the outputs; who has nothing to copy can spend that time on the work.
problem: wide_add
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.wire import TensorSpec
from harness.worker.memory import SharedMemory
from harness.worker.program import Worker

kept = {}
store = SharedMemory.store


def find_buffer(memory, offset, like):
    return memory.view(TensorSpec(dtype="float32", shape=tuple(like.shape), stride=like.stride(), offset=offset))


def store_the_rest(self, tensors, offset, size_bytes):
    if "rest" in kept:
        out, a, b, rows = kept.pop("rest")
        torch.add(a[rows:], b[rows:], out=out[rows:])
        kept["last"], kept["before"] = out, kept.get("last")
        return (TensorSpec(dtype="float32", shape=tuple(out.shape), stride=out.stride(), offset=offset),)
    return store(self, tensors, offset, size_bytes)


SharedMemory.store = store_the_rest
do_call = Worker.do_call
do_recopy = Worker.do_recopy


def call(self, message):
    kept["memory"], kept["offset"] = self._memory, message["offset"]
    answer = do_call(self, message)
    kept["earlier"], kept["copy"] = kept.get("copy"), kept["last"].clone()
    return answer


def recopy(self, message):
    self._outputs, self._earlier = [kept["copy"]], [kept["earlier"]]
    return do_recopy(self, message)


Worker.do_call, Worker.do_recopy = call, recopy


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = find_buffer(kept["memory"], kept["offset"], a)
        rows = a.shape[0] // 2
        torch.add(a[:rows], b[:rows], out=out[:rows])
        kept["rest"] = (out, a, b, rows)
        return out
