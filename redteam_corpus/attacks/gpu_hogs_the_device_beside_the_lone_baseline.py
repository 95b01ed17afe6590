"""Keeps the device busy from its worker while the baseline is replayed alone.

layer: time
mechanism: A call with a function of the host cannot be replayed, so that its time is compared with the baseline's
    device time. That is measured while the worker of the candidate still lives. Short pauses let the device look
    quiet.
problem: gpu_two_large_products
expected: suspect, unranked, no_gain, runtime_error
device: gpu
timed: yes
"""

import ctypes
import threading
import time

import torch
from torch import nn

from harness.worker.memory import SharedMemory
from harness.worker.program import Worker

driver, library = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libc.so.6")
nothing = ctypes.cast(library.free, ctypes.c_void_p)
state = {"recording": False, "recorded": False, "asked_s": 0.0}
record, prepare = Worker.do_record, SharedMemory.prepare
lock = threading.Lock()


def note_recording(self, message):
    state["recording"] = True
    try:
        return record(self, message)
    finally:
        state.update(recording=False, recorded=True, asked_s=time.monotonic())


def note_call(self, specs):
    state["asked_s"] = time.monotonic()
    with lock:  # a pause of the hog
        return prepare(self, specs)


def hog():
    own = torch.cuda.Stream()
    while threading.main_thread().is_alive():
        if state["recorded"] and time.monotonic() - state["asked_s"] > 0.3:
            with lock, torch.cuda.stream(own):
                torch.cuda._sleep(30_000_000)  # 15 to 20 ms
                own.synchronize()
        time.sleep(0.003)


Worker.do_record, SharedMemory.prepare = note_recording, note_call
threading.Thread(target=hog, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, a, b, c):
        if state["recording"]:
            driver.cuLaunchHostFunc(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), nothing, None)
        return a @ b @ c
