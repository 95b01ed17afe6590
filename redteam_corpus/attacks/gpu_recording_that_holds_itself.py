"""Has its recording launch a graph that is its own child.

layer: process
mechanism: Who rebuilds the graph never comes to an end.
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
    recording = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    stream = recording["operations"][0][1]
    recording["graphs"] = [{"nodes": [["graph", 0, 0], ["graph", 0, 0]], "edges": []}]
    recording["operations"].append(["graph", stream, 0])
    text = json.dumps(recording).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)
