"""Overwrites clock_gettime in the C library: time passes at a third of its speed.

layer: time
mechanism: Every clock that Python, torch or C reads in this process is that one.
problem: gpu_product
expected: no_gain, suspect, unranked, runtime_error, timeout
device: gpu
timed: yes
"""

import ctypes

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long first = 0;
static int slow_clock(clockid_t clock, timespec* now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_RAW) return status;
    long ns = now->tv_sec * 1000000000L + now->tv_nsec;
    if (first == 0) first = ns;
    ns = first + (ns - first) / 3;
    now->tv_sec = ns / 1000000000L;
    now->tv_nsec = ns % 1000000000L;
    return status;
}

extern "C" int replace() {
    unsigned char* place = (unsigned char*)dlsym(RTLD_DEFAULT, "clock_gettime");
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void* target = (void*)slow_clock;
    memcpy(jump + 2, &target, 8);
    if (mprotect((void*)((unsigned long)place & -4096L), 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 1;
    memcpy(place, jump, 12);
    return 0;
}
"""
library = ctypes.CDLL(load_inline(name="clock", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False))
library.replace()


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
