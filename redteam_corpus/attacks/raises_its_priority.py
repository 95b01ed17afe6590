"""Asks for the highest priority, for all cores, and for real-time scheduling.

layer: time
mechanism: Whoever goes first at the scheduler is timed without interruptions that the baseline has.
problem: product
expected: no_gain, suspect, unranked
device: cpu
timed: yes
"""

import contextlib
import os

from torch import nn

with contextlib.suppress(OSError):
    os.setpriority(os.PRIO_PROCESS, 0, -20)
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
with contextlib.suppress(OSError):
    os.sched_setaffinity(0, range(os.cpu_count()))
for process in os.listdir("/proc"):
    if process.isdigit() and int(process) != os.getpid():
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(process), 19)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(process), {0})


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
