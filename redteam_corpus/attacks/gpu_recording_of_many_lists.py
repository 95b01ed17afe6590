"""Replaces its recording by 200 MB of empty lists, which take gigabytes once they are read.

layer: process
mechanism: The replayer's memory is not limited, and it reads whatever the recording holds.
problem: gpu_chain
expected: suspect, no_gain, unranked, runtime_error
device: gpu
timed: yes
"""

import json
import os

import torch
from torch import nn

from harness.worker.recorder import driver_calls

record = driver_calls.CallRecorder.record


def record_and_forge(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    forge(descriptors[0])
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_and_forge


def forge(descriptor):
    os.ftruncate(descriptor, 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(b"[")
        for _ in range(64):
            file.write(b"[]," * (1 << 20))
        file.write(b"0]")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)
