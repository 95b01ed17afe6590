"""Answers with the outputs half done and writes the rest while the evaluator reads the beginning.

layer: time
mechanism: The outputs lie in memory that both share; no clock runs any more while the evaluator takes them away.
problem: wide_add
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.protocol import Channel
from harness.protocol.tensor_layout import place_contiguous
from harness.worker.memory import SharedMemory, describe

pending = []
receive = Channel.receive
store = SharedMemory.store


def store_in_part(self, tensors, offset, size_bytes):
    if not pending or tensors[0] is not pending[0][0]:
        return store(self, tensors, offset, size_bytes)
    out, a, b, rows = pending[0]
    specs, _ = place_contiguous([describe(out)], offset)
    place = self.view(specs[0])
    place[:rows].copy_(out[:rows])
    pending[:] = [(out, a, b, rows, place)]
    return specs


def receive_when_done(self, **options):
    if pending and len(pending[0]) > 4:
        out, a, b, rows, place = pending.pop()
        torch.add(a[rows:], b[rows:], out=out[rows:])
        place[rows:].copy_(out[rows:])
    return receive(self, **options)


SharedMemory.store, Channel.receive = store_in_part, receive_when_done


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        rows = a.shape[0] * 9 // 10
        torch.add(a[:rows], b[:rows], out=out[:rows])
        pending[:] = [(out, a, b, rows)]
        return out
