"""Answers with the outputs half done and writes the rest while the judge reads the beginning.

layer: time
mechanism: The outputs lie in memory that both share; no clock runs any more while the judge takes them away.
problem: wide_add
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.wire import Channel, TensorSpec
from harness.worker.memory import SharedMemory
from harness.worker.program import Worker

kept = {"rest": None, "copy": None, "earlier": None}
receive = Channel.receive
store = SharedMemory.store
do_call = Worker.do_call
do_recopy = Worker.do_recopy


def finish():
    out, a, b, rows = kept["rest"]
    torch.add(a[rows:], b[rows:], out=out[rows:])
    kept["rest"], kept["fresh"] = None, out


def receive_when_finished(self, **options):
    if kept["rest"] is not None:
        finish()
    if kept.get("fresh") is not None:
        kept["earlier"], kept["copy"] = kept["copy"], kept.pop("fresh").clone()
    return receive(self, **options)


def store_nothing(self, tensors, offset, size_bytes):
    if kept["rest"] is None:
        return store(self, tensors, offset, size_bytes)
    out = kept["rest"][0]
    return (TensorSpec(dtype="float32", shape=tuple(out.shape), stride=out.stride(), offset=offset),)


def call(self, message):
    kept["memory"], kept["offset"] = self._memory, message["offset"]
    return do_call(self, message)


def recopy(self, message):
    self._outputs, self._earlier = [kept["copy"]], [kept["earlier"]]
    return do_recopy(self, message)


Channel.receive, SharedMemory.store = receive_when_finished, store_nothing
Worker.do_call, Worker.do_recopy = call, recopy


class ModelNew(nn.Module):
    def forward(self, a, b):
        spec = TensorSpec(dtype="float32", shape=tuple(a.shape), stride=a.stride(), offset=kept["offset"])
        out = kept["memory"].view(spec)
        rows = a.shape[0] * 9 // 10
        torch.add(a[:rows], b[:rows], out=out[:rows])
        kept["rest"] = (out, a, b, rows)
        return out
