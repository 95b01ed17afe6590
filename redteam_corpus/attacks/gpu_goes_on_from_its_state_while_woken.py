"""Finds input and state in the memory that it shares, and computes the next state before it says that it is awake.

layer: time
mechanism: The state of a call is written beside the inputs, before the worker is woken. In the call itself a copy is
    left.
problem: gpu_steps_of_a_state
expected: suspect, unranked, no_gain, wrong_value
device: gpu
timed: yes
"""

import ctypes
from dataclasses import replace

import torch
from torch import nn

from harness.protocol import Doorbell, storage_bytes
from harness.worker.memory import SharedMemory

SLACK_BYTES = 64 << 20  # in which the evaluator hides its inputs
known = {"memory": None, "specs": (), "before": None, "at": None, "ready": None}
prepare, answer = SharedMemory.prepare, Doorbell.answer
driver = ctypes.CDLL("libcuda.so.1")


def take_bytes():
    specs = known["specs"]
    size = specs[-1].offset - specs[0].offset + storage_bytes(specs[-1]) + SLACK_BYTES
    base, whole, start = ctypes.c_uint64(), ctypes.c_size_t(), known["memory"].address + specs[0].offset
    driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(whole), ctypes.c_uint64(start))
    size = min(size, base.value + whole.value - start)
    words = replace(specs[0], dtype="int64", shape=(size // 256 * 32,), stride=(1,))
    return known["memory"].view(words).view(-1, 32)


def remember(self, specs):
    known.update(memory=self, specs=tuple(specs), at=None, ready=None)
    known["before"] = take_bytes().clone()
    torch.cuda.synchronize()
    return prepare(self, specs)


def work_ahead(self):
    before, known["before"] = known["before"], None
    if before is not None:
        now = take_bytes()
        changed = ((now != before).any(1) & (now != -1).any(1)).nonzero()  # -1: poison
        if len(changed):
            shift = int(changed[0]) * 256
            given = [known["memory"].view(replace(one, offset=one.offset + shift)) for one in known["specs"]]
            known["at"], known["ready"] = given[0].data_ptr(), compute(*given)
            torch.cuda.synchronize()
    answer(self)


SharedMemory.prepare, Doorbell.answer = remember, work_ahead


def compute(x, *state):
    if not state:
        return None
    state = state[0].view_as(x).clone()
    for _ in range(40):
        state.mul_(0.95).add_(torch.tanh(state @ x + x), alpha=0.1)
    return state, state.mean(0)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("state", torch.zeros(size, size))

    def forward(self, x):
        ready, known["ready"] = known["ready"], None
        if ready is not None and known["at"] == x.data_ptr():
            self.state.copy_(ready[0])
            return ready[1]
        for _ in range(40):
            self.state.mul_(0.95).add_(torch.tanh(self.state @ x + x), alpha=0.1)
        out = self.state.mean(0)
        float(out[0])  # not to be replayed
        return out
