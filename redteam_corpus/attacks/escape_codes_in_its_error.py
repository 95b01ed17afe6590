"""Raises an error whose text moves the cursor and is markup.

layer: process
mechanism: A message is printed on a terminal and into a page; what it says there is the candidate's to choose.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        raise RuntimeError(
            "[/bold][red]\x1b[2J\x1b]0;owned\x07\r\n</td><script>alert(1)</script>\u202e\ud800\x00[/nothing]"
        )
