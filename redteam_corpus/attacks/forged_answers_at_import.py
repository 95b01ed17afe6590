"""Answers all that will be asked while it is imported.

layer: process
mechanism: Nothing of the candidate has to run if the answers are there already.
problem: add
expected: runtime_error, suspect
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


def answer(**changes):
    spec = [["float32", [64, 65], [65, 1], 33280], [65, 1], "cpu"]
    return {"kind": "returned", "tree": {"t": 0}, "reported_ns": 1000, "specs": [spec], **changes}


forge({"kind": "ready"})
forge({"kind": "constructed", "state": []})
for _ in range(3):
    forge(answer())
os._exit(0)
# There is no class ModelNew.
