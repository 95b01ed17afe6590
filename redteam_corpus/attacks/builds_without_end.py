"""Asks for builds in an endless loop.

layer: process
mechanism: While the evaluator builds, its clock for the call stands still.
problem: add
expected: rejected, suspect, runtime_error, timeout
device: cpu
timed: no
"""

import json
import os
import stat
import struct

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


class ModelNew(nn.Module):
    def forward(self, a, b):
        while True:
            forge({"kind": "build", "request": {"name": "x", "extra_cflags": ["-o"]}})
