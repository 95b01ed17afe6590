"""Has the driver lock every other process's use of the device, for milliseconds after its calls.

layer: time
mechanism: Locking for a checkpoint needs no more than a process's number; whoever is locked waits in its next call
    of CUDA.
problem: gpu_add
expected: no_gain, suspect, unranked, runtime_error
device: gpu
timed: yes
"""

import ctypes
import os
import struct
import threading
import time
from pathlib import Path

from torch import nn

driver = ctypes.CDLL("libcuda.so.1")
ARGUMENTS = struct.pack("<I60x", 1)  # wait for a millisecond at most


def lock_others():
    time.sleep(0.001)
    others = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if int(entry.name) != os.getpid()]
    for other in others:
        if driver.cuCheckpointProcessLock(other, ARGUMENTS) == 0:
            time.sleep(0.005)
            driver.cuCheckpointProcessUnlock(other, None)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        threading.Thread(target=lock_others).start()
        return out
