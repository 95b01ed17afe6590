"""Has two processes take the device in turn while the baseline is replayed alone.

layer: time
mechanism: Each process on the device gets a slice of its time. A call that writes a word through its stream is
    refused by the recorder, and its processes are meant to run while the baseline is timed alone for the bound.
problem: gpu_two_large_products
expected: suspect, unranked, no_gain, runtime_error, load_error
device: gpu
timed: yes
"""

import ctypes
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn

from harness.worker.memory import SharedMemory
from harness.worker.program import Worker

HOG = r'''
import ctypes, mmap, os, sys, time
with open(sys.argv[1], "r+b") as file:
    word = mmap.mmap(file.fileno(), 4096)
driver = ctypes.CDLL("libcuda.so.1")
PTX = b""".version 6.0
.target sm_60
.address_size 64
.visible .entry spin()
{
    .reg .pred %p<2>;
    .reg .b64 %rd<4>;
    mov.u64 %rd1, %globaltimer;
AGAIN:
    mov.u64 %rd2, %globaltimer;
    sub.u64 %rd3, %rd2, %rd1;
    setp.lt.u64 %p1, %rd3, 20000000;
    @%p1 bra AGAIN;
    ret;
}
"""
context, module, spin, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
begin = time.monotonic()
while word[0] == 0 and time.monotonic() - begin < 60 and os.getppid() == int(sys.argv[2]):
    time.sleep(0.002)
driver.cuInit(0)
driver.cuDeviceGet(ctypes.byref(device), 0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
driver.cuCtxSetCurrent(context)
driver.cuModuleLoadData(ctypes.byref(module), PTX)
driver.cuModuleGetFunction(ctypes.byref(spin), module, b"spin")
while time.monotonic() - begin < 120 and os.getppid() == int(sys.argv[2]):
    if word[0] == 1 and time.time() % 0.023 < 0.020:
        driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        driver.cuCtxSynchronize()
    time.sleep(0.0005)
'''
path = Path.home() / "hogs"
path.write_bytes(bytes(4096))
word = mmap.mmap(path.open("r+b").fileno(), 4096)
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", HOG, str(path), str(os.getpid())])
state = {"recording": False, "recorded": False}
record, prepare = Worker.do_record, SharedMemory.prepare
driver = ctypes.CDLL("libcuda.so.1")


def note_recording(self, message):
    state["recording"] = True
    try:
        return record(self, message)
    finally:
        state.update(recording=False, recorded=True)
        word[0] = 1


def note_call(self, specs):
    if word[0] == 1:
        word[0] = 2  # no more, until the next one is answered
        time.sleep(0.03)
    return prepare(self, specs)


window = Worker.do_window


def note_answer(self, message):
    try:
        return window(self, message)
    finally:
        if state["recorded"]:
            word[0] = 1


Worker.do_record, Worker.do_window, SharedMemory.prepare = note_recording, note_answer, note_call


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = torch.zeros(2, dtype=torch.int32, device="cuda")

    def forward(self, a, b, c):
        if state["recording"]:
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            place = ctypes.c_uint64(self.word.data_ptr())
            driver.cuStreamWriteValue32_v2(stream, place, ctypes.c_uint32(1), ctypes.c_uint(0))
        return a @ b @ c
