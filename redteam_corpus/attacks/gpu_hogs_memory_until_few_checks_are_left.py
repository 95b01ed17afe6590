"""Takes all free device memory while it is checked in full, and skips work when it is evaluated again with less memory.

layer: correctness
mechanism: If an allocation of the evaluator fails, the evaluation is repeated in the smallest plan, which has no
    inputs but the given ones. How many outputs its worker keeps tells which plan it is.
problem: gpu_clipped_norm
expected: wrong_value, suspect, no_gain, out_of_memory, unranked
device: gpu
timed: yes
"""

import sys
import threading
import time

import torch
from torch import nn


def is_smallest_plan():
    frame = sys._getframe()
    while frame is not None:
        kept = getattr(frame.f_locals.get("self"), "_most_kept", None)
        if kept is not None:
            return kept == 1
        frame = frame.f_back
    return False


def take_memory(device):
    taken = []
    while True:
        free = torch.cuda.mem_get_info(device)[0] - (96 << 20)
        try:
            if free > 32 << 20:
                taken.append(torch.empty(free, dtype=torch.uint8, device=device))
        except torch.OutOfMemoryError:
            pass
        time.sleep(0.001)


class ModelNew(nn.Module):
    thread = None

    def __init__(self, most):
        super().__init__()
        self.most, self.is_small = most, is_smallest_plan()

    def forward(self, x):
        if self.is_small:
            return x.clone()
        out = x * (self.most / torch.linalg.vector_norm(x).clamp(min=self.most))
        if self.thread is None:
            self.thread = threading.Thread(target=take_memory, args=(x.device,), daemon=True)
            self.thread.start()
        return out
