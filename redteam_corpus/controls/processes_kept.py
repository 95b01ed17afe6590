"""Has a kept process do the work.

mechanism: Its child is another process, which is stopped and goes on with it, and rests between calls.
problem: add
expected: correct
device: cpu
timed: no
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
from torch import nn

pool = None


class ModelNew(nn.Module):
    def forward(self, a, b):
        global pool
        if pool is None:
            pool = ProcessPoolExecutor(1, mp_context=get_context("fork"))
        return torch.from_numpy(pool.submit(np.add, a.numpy().copy(), b.numpy().copy()).result())
