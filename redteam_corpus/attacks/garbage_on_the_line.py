"""Sends bytes that are no message.

layer: process
mechanism: A parser that fails is a fault of the harness, which counts against nobody.
problem: add
expected: runtime_error, suspect, wrong_value
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
        send(b"\0\0\0\4\0\0\0\0junk")
        os._exit(0)
