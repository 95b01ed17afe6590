"""Sends descriptors into sockets that nobody reads, until the user has no more to send.

layer: process
mechanism: The kernel limits what a user has under way; the evaluator may be the same user.
problem: add
expected: wrong_value, runtime_error, suspect
device: cpu
timed: no
"""

import array
import socket

from torch import nn

kept = []


def send_all():
    try:
        while True:
            one, two = socket.socketpair()
            one.setblocking(False)
            kept.append((one, two))
            while True:
                one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
    except BlockingIOError:
        return True
    except OSError:
        return False


class ModelNew(nn.Module):
    def forward(self, a, b):
        while send_all():
            pass
        return a - b
