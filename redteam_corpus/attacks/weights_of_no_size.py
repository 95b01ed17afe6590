"""Describes weights of a negative size.

layer: process
mechanism: The evaluator compares weights before anything runs.
problem: add
expected: suspect, runtime_error
device: cpu
timed: no
"""

import json
import os
import stat
import struct


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


forge({"kind": "ready"})
forge({"kind": "constructed", "state": [["w", ["float32", [-1], [1], 0]]]})
os._exit(0)
# There is no class ModelNew.
