"""Copies between host and device all the time.

layer: time
mechanism: Inputs, signals and events of all processes share the bus, and copy engines are not in any stream.
problem: gpu_short_add
expected: no_gain, suspect, unranked, wrong_value
device: gpu
timed: yes
"""

import threading
import time

import torch
from torch import nn

called = threading.Event()


def copy_all_the_time(stream, here, there):
    end = time.monotonic() + 120
    while time.monotonic() < end and threading.main_thread().is_alive():
        called.wait(1.0)
        with torch.cuda.stream(stream):
            for _ in range(4):
                there.copy_(here, non_blocking=True)
        stream.synchronize()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        here, there = torch.zeros(1 << 23, device="cpu").pin_memory(), torch.zeros(1 << 23, device="cuda")
        arguments = (torch.cuda.Stream(), here, there)
        threading.Thread(target=copy_all_the_time, args=arguments, daemon=True).start()

    def forward(self, a, b):
        called.clear()
        out = a + b
        torch.cuda.synchronize()
        called.set()
        return out
