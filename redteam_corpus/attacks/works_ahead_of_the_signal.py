"""Has one of torch's own threads compute ahead while the signal to go is on its way.

layer: time
mechanism: Torch's threads spin after they were woken; who works there instead uses no more processor time, and nobody
    waits for it.
problem: powers
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import ctypes
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.program import Worker

SOURCE = r"""
#include <atomic>
#include <cmath>
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

extern "C" void plain(const float *a, const float *b, float *out, long n) {
  for (long i = 0; i < n; i++) out[i] = powf(a[i], b[i]);
}

static void work(void *) {
  if (number() == 0) return;
  plain(first, second, sums, count);
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
extern "C" void await_it() { while (!is_done) ; }

extern "C" void start(const float *a, const float *b, float *out, long elements) {
  first = a; second = b; sums = out; count = elements;
  is_done = false;
  has_begun = true;
  begin(work, nullptr, 2);
}
"""
path = load_inline(
    name="ahead", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False,
    extra_cflags=["-Ofast", "-march=haswell"], extra_ldflags=["-lmvec", "-lm"],
)
library = ctypes.CDLL(path)
library.plain.argtypes = library.start.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
mapped = Path("/proc/self/maps").read_text().splitlines()
assert library.find_threads(next(line.split()[-1] for line in mapped if "libgomp" in line).encode())
known = {"inputs": None, "out": None}
wake = Worker._wake


def work_ahead(self):
    library.end()
    if known["inputs"] is None:
        return wake(self)
    a, b = known["inputs"]
    known["out"] = torch.empty_like(a)
    library.start(a.data_ptr(), b.data_ptr(), known["out"].data_ptr(), a.numel())


Worker._wake = work_ahead


class ModelNew(nn.Module):
    def forward(self, a, b):
        out, known["out"], known["inputs"] = known["out"], None, (a, b)
        if out is None:
            out = torch.empty_like(a)
            library.plain(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel())
            return out
        library.await_it()
        library.end()
        return out
