"""Announces a message of four gigabytes.

layer: process
mechanism: An evaluator that reads what is announced waits or allocates for ever.
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
        send(b"\xff" * 8)
        os._exit(0)
