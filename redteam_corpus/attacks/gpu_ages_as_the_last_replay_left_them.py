"""Puts other memory, with what the state will be, in the place of its state, in the call that is recorded.

layer: correctness
mechanism: State is no output that must be new: its memory is not filled before a replay. Each replay begins with the state
    after one call, where whole numbers are the same every time.
problem: gpu_ages
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.program import Worker
from harness.worker.recorder import driver_calls

do_record, record = Worker.do_record, driver_calls.CallRecorder.record
is_recorded = False


def record_and_tell(self, reset, call):
    global is_recorded
    is_recorded = True
    try:
        return record(self, reset, call)
    finally:
        is_recorded = False


def record_and_leave(self, message):
    own = self._model.ages
    answer = do_record(self, message)
    self._model.ages = own  # later calls of the worker leave the recorded memory alone
    return answer


driver_calls.CallRecorder.record, Worker.do_record = record_and_tell, record_and_leave


class ModelNew(nn.Module):
    spares = ()

    def __init__(self, entries):
        super().__init__()
        self.register_buffer("ages", torch.zeros(entries, dtype=torch.int64))

    def forward(self, x):
        if not self.spares:
            self.spares = [torch.full_like(self.ages, 2) for _ in range(driver_calls.MOST_RECORDINGS)]
        if is_recorded:
            self.ages = self.spares.pop()
            self.spares.insert(0, self.ages)
        else:
            self.ages += 1
        return x * 2.0
