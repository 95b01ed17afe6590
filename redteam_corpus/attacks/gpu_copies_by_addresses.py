"""Adds copies between addresses to its recording, of which one is an object of the process that replays it.

layer: time
mechanism: The driver finds out by itself whether an address is the device's or the host's.
problem: gpu_chain
expected: suspect, no_gain, unranked
device: gpu
timed: yes
"""

import ctypes
import json
import os
import struct
import time

import torch
from torch import nn

from harness.worker.recorder import driver_calls
from harness.worker.recorder.replayer import ReplayServer

THOUSAND = next(one for one in ReplayServer._time_on_device.__code__.co_consts if type(one) is float)
METHOD = ctypes.c_ulonglong.from_address(id(os.getpid) + 16).value
TARGETS = (id(THOUSAND) + 16, id(time.perf_counter_ns) + 16)
kept = []


def add_copies(descriptor):
    if not kept:
        kept.append(torch.tensor(struct.unpack("<qq", struct.pack("<dQ", 250.0, METHOD)), device="cuda"))
        torch.cuda.synchronize()
    recording = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    stream = recording["operations"][0][1]
    for number, target in enumerate(TARGETS):
        recording["operations"].append(["copy", stream, target, kept[0].data_ptr() + 8 * number, 8])
    text = json.dumps(recording).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


record = driver_calls.CallRecorder.record


def record_more(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    add_copies(descriptors[0])
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_more


class ModelNew(nn.Module):
    def forward(self, x):
        if not kept:
            kept.append(torch.tensor(struct.unpack("<qq", struct.pack("<dQ", 250.0, METHOD)), device=x.device))
        return torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)
