"""Fills the buffers of sockets that nobody reads.

layer: process
mechanism: What waits in a socket is in no process's memory.
problem: add
expected: wrong_value, runtime_error, out_of_memory, timeout, suspect
device: cpu
timed: no
"""

import os
import socket
import time

from torch import nn


def fill():
    kept = []
    try:
        while True:
            one, two = socket.socketpair()
            one.setblocking(False)
            kept += [one, two]
            try:
                while True:
                    one.send(bytes(1 << 16))
            except BlockingIOError:
                pass
    except OSError:
        time.sleep(100)


class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(2):
            if os.fork() == 0:
                fill()
        time.sleep(0.5)
        return a - b
