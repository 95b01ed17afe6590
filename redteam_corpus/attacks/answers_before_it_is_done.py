"""Says that the call is done, and only then begins to work.

layer: time
mechanism: Both clocks of the evaluator stop at the answer; the work is done while it waits for the outputs.
problem: product
expected: suspect, unranked
device: cpu
timed: yes
"""

from torch import nn

from harness.protocol import Channel

send = Channel.send
line = []


def send_once(self, message, *args, **kwargs):
    line[:] = [self]
    if message.get("kind") != "called":
        send(self, message, *args, **kwargs)


Channel.send = send_once


class ModelNew(nn.Module):
    def forward(self, a, b):
        send(line[0], {"kind": "called", "reported_ns": 200_000})
        return a @ b
