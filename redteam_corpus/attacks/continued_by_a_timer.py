"""Has a timer of the kernel continue it whenever it is stopped, and eats every core meanwhile.

layer: time
mechanism: A timer that sends SIGCONT undoes a stop without anybody calling kill.
problem: product
expected: no_gain, suspect, unranked, runtime_error, load_error
device: cpu
timed: yes
"""

import ctypes
import os
import signal

from torch import nn

libc = ctypes.CDLL(None, use_errno=True)


class Event(ctypes.Structure):
    _fields_ = [
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("pad", ctypes.c_char * 48),
    ]


def continue_every(ms):
    signal.signal(signal.SIGCONT, lambda *_: None)  # an ignored signal's timer does not ring
    timer = ctypes.c_void_p()
    event = Event(signo=18, notify=0)
    made = libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer))
    times = (ctypes.c_long * 4)(0, ms * 1000000, 0, ms * 1000000)
    if made == 0:
        libc.timer_settime(timer, 0, times, None)


def hog():
    continue_every(3)
    while True:
        pass


for _ in range(2):
    if os.fork() == 0:
        hog()


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
