"""Describes an output of hundreds of thousands of numbers, nested.

layer: process
mechanism: A structure is walked through several times before anybody asks how large it is.
problem: add
expected: suspect, wrong_shape, runtime_error, timeout
device: cpu
timed: no
"""

from torch import nn

from harness.protocol import Channel

send = Channel.send


def send_more(self, message, *args, **kwargs):
    if message.get("kind") == "called":
        tree = {"list": [{"v": 1}] * 400_000}
        for _ in range(25):
            tree = {"list": [tree]}
        message["tree"] = {"tuple": [message["tree"], tree]}
    return send(self, message, *args, **kwargs)


Channel.send = send_more


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
