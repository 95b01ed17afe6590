"""Computes ahead in processes that are gone before anybody looks at the processor time.

layer: time
mechanism: The processor time of a child that has ended belongs to nobody that can still be asked.
problem: middle_add
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.program import Worker

SOURCE = r"""
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <sys/mman.h>
static const float *a, *b; static float *out; static long n; static volatile int done; static char *stack;
static int work(void *part) {
  long half = n / 2, first = part ? half : 0, last = part ? n : half;
  for (long i = first; i < last; i++) out[i] = a[i] + b[i];
  __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
  _exit(0);
}
extern "C" void ahead(const float *x, const float *y, float *z, long m) {
  if (!stack) {
    signal(SIGCHLD, SIG_IGN);
    stack = (char *)mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  }
  a = x; b = y; out = z; n = m; done = 0;
  int flags = CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD;
  int one = clone(work, stack + (1 << 19), flags, (void *)0);
  int two = clone(work, stack + (1 << 20), flags, (void *)1);
  while (done < 2) usleep(20);
  while (kill(one, 0) == 0 || kill(two, 0) == 0) usleep(20);
}
"""
library = ctypes.CDLL(
    load_inline(
        name="ahead", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False, extra_cflags=["-O3"]
    )
)
library.ahead.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
state = {"inputs": None, "ready": None}
wake = Worker._wake


def work_ahead(self):
    wake(self)
    if state["inputs"] is not None:
        a, b = state["inputs"]
        out = torch.empty_like(a)
        library.ahead(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel())
        state["ready"] = (a[-1, -1].item(), out)


Worker._wake = work_ahead


class ModelNew(nn.Module):
    def forward(self, a, b):
        ready, state["ready"] = state["ready"], None
        state["inputs"] = (a, b)
        if ready is not None and ready[0] == a[-1, -1].item():
            return ready[1]
        return a + b
