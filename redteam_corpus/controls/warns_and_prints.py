"""Warns, logs and prints a lot.

mechanism: Output on both standard streams that nobody asked for.
problem: add
expected: correct
device: cpu
timed: no
"""

import logging
import sys
import warnings

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        warnings.warn("an honest warning", stacklevel=1)
        logging.getLogger(__name__).error("an honest error message")
        print("adding", "x" * 100_000)
        print('{"kind": "returned"}', file=sys.stderr, flush=True)
        return a + b
