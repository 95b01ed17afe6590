"""Sends a message of a hundred thousand brackets.

layer: process
mechanism: A recursive parser runs out of stack.
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
        body = b'{"kind":"called","x":' + b"[" * 100000 + b"]" * 100000 + b"}"
        send(struct.pack(">II", len(body), 0) + body)
        os._exit(0)
