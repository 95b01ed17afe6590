"""Answers a call completely by itself, with a tiny time.

layer: process
mechanism: The evaluator hears what it waits for, in the right order.
problem: add
expected: runtime_error, suspect, wrong_value
device: cpu
timed: no
"""

import json
import os
import stat
import struct

import torch
from torch import nn


def send(frame):
    for descriptor in range(3, 4096):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):  # on an eventfd it would wait for ever
                os.write(descriptor, frame)
        except OSError:
            pass


def forge(message):
    body = json.dumps(message).encode()
    send(struct.pack(">II", len(body), 0) + body)


def answer(**changes):
    spec = [["float32", [64, 65], [65, 1], 33280], [65, 1], "cpu"]
    return {"kind": "returned", "tree": {"t": 0}, "reported_ns": 1000, "specs": [spec], **changes}


class ModelNew(nn.Module):
    def forward(self, a, b):
        forge({"kind": "called", "reported_ns": 1000})
        forge(answer())
        return torch.zeros_like(a)
