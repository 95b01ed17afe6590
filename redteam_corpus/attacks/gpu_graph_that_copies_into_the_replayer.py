"""Adds a graph to its recording whose nodes copy into objects of the process that replays it.

layer: time
mechanism: Nodes of a graph are rebuilt from bytes that the candidate's process wrote, pointers and all.
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


def describe_copy(source, target):
    """A CUDA_MEMCPY3D of 8 bytes from the device to the host."""
    sides = (2, 0, source), (1, target, 0)
    packed = b"".join(
        struct.pack("<QQQQiiQQQQQQ", 0, 0, 0, 0, kind, 0, host, device, 0, 0, 8, 1) for kind, host, device in sides
    )
    return (packed + struct.pack("<QQQ", 8, 1, 1)).hex()


def add_copies(descriptor):
    if not kept:
        kept.append(torch.tensor(struct.unpack("<qq", struct.pack("<dQ", 250.0, METHOD)), device="cuda"))
        torch.cuda.synchronize()
    recording = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    stream = recording["operations"][0][1]
    for number, target in enumerate(TARGETS):
        copy = describe_copy(kept[0].data_ptr() + 8 * number, target)
        recording["graphs"].append({"nodes": [["copy3d", 0, copy]], "edges": []})
        recording["operations"].append(["graph", stream, len(recording["graphs"]) - 1])
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
