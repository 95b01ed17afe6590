"""Does all steps in its input's own memory before it says that it is awake.

layer: time
mechanism: A problem that works in place needs no place for results; when the call begins nothing is left to do. The
    call copies a number from the device, so that it is timed whole.
problem: gpu_steps_in_place
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


def compute(x, w):
    for _ in range(40):
        x.add_(torch.tanh(x @ w), alpha=0.1)
    return x


class ModelNew(nn.Module):
    def forward(self, x, w):
        ready, known["ready"] = known["ready"], None
        if ready is None or known["at"] != x.data_ptr():
            compute(x, w)
            float(x[0, 0])  # not to be replayed
        return x
