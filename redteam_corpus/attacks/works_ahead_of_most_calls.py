"""Has one of torch's own threads compute ahead of most of its calls, and says only then that it is awake.

layer: time
mechanism: A clock that looks at the fastest quarter of all wakings sees those of the calls where nothing was done ahead.
problem: middle_add
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import ctypes
import random
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.program import Worker

SOURCE = r"""
#include <atomic>
#include <dlfcn.h>
#include <unistd.h>
static const float *first, *second;
static float *sums;
static long count;
static bool has_begun;
static std::atomic<bool> is_done;
static void (*begin)(void (*)(void *), void *, unsigned);
static void (*finish)();
static int (*number)();

static void work(void *) {
  if (number() == 0) return;
  for (long i = 0; i < count; i++) sums[i] = first[i] + second[i];
  is_done = true;
}

extern "C" int find_threads(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return 0;
  begin = (void (*)(void (*)(void *), void *, unsigned))dlsym(library, "GOMP_parallel_start");
  finish = (void (*)())dlsym(library, "GOMP_parallel_end");
  number = (int (*)())dlsym(library, "omp_get_thread_num");
  return begin && finish && number;
}

extern "C" void end() {
  if (has_begun) finish();
  has_begun = false;
}

extern "C" void work_ahead(const float *a, const float *b, float *out, long elements) {
  first = a; second = b; sums = out; count = elements;
  is_done = false;
  has_begun = true;
  begin(work, nullptr, 2);
  while (!is_done) usleep(10);
}
"""
path = load_inline(
    name="ahead", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False, extra_cflags=["-O3"]
)
library = ctypes.CDLL(path)
library.work_ahead.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
mapped = Path("/proc/self/maps").read_text().splitlines()
assert library.find_threads(next(line.split()[-1] for line in mapped if "libgomp" in line).encode())
known = {"inputs": None, "sums": None}
wake = Worker._wake


def work_ahead(self):
    library.end()
    wake(self)
    if known["inputs"] is not None and random.random() < 0.65:
        a, b = known["inputs"]
        known["sums"] = torch.empty_like(a)
        library.work_ahead(a.data_ptr(), b.data_ptr(), known["sums"].data_ptr(), a.numel())


Worker._wake = work_ahead


class ModelNew(nn.Module):
    def forward(self, a, b):
        library.end()
        sums, known["sums"], known["inputs"] = known["sums"], None, (a, b)
        return a + b if sums is None else sums
