"""Answers with a message whose kind is a text of fifty megabytes.

layer: process
mechanism: What was found in the place of the expected answer is quoted in the record.
problem: add
expected: suspect
device: cpu
timed: no
"""

from torch import nn

from harness.worker.program import Worker


def do_call(self, message):
    self._receive_call(message)
    self._evaluator.send({"kind": "x" * (50 << 20)})


Worker.do_call = do_call


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
