"""Has one of torch's own threads work ahead for as long as it would spin, in a library of its own that is called libtorch.

layer: time
mechanism: Where torch's threads are is told by the base name of the file alone, which a candidate chooses; and their processor time is compared with that of threads that spin.
problem: more_powers
expected: suspect, wrong_value, unranked, no_gain
device: cpu
timed: yes
"""

import ctypes
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.program import Worker

AHEAD_US = 450
SOURCE = r"""
#include <atomic>
#include <cmath>
#include <ctime>
#include <dlfcn.h>
static const float *first, *second;
static float *powers;
static long count, budget_ns, began_ns;
static const long STEP = 4096;
static bool has_begun;
static std::atomic<long> next;
static void (*begin)(void (*)(void *), void *, unsigned);
static void (*finish)();
static int (*number)();

static long now_ns() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }

static void part(const float *__restrict a, const float *__restrict b, float *__restrict out, long n) {
  for (long i = 0; i < n; i++) {
    double x = a[i], t = (x - 1) / (x + 1), q = t * t;
    double log2 = 2.885390081777927 * t * (1 + q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q * (1. / 9 + q * (1. / 11 + q / 13))))));
    double y = b[i] * log2, whole = __builtin_nearbyint(y), f = (y - whole) * 0.6931471805599453;
    double e = 1 + f * (1 + f * (1. / 2 + f * (1. / 6 + f * (1. / 24 + f * (1. / 120 + f * (1. / 720 + f / 5040))))));
    union { float number; int bits; } scale = {.bits = ((int)whole + 127) << 23};
    out[i] = (float)e * scale.number;
  }
}

static bool take() {
  long at = STEP * next.fetch_add(1);
  if (at >= count) return false;
  part(first + at, second + at, powers + at, at + STEP < count ? STEP : count - at);
  return true;
}

static void ahead(void *) {
  if (number() == 0) return;
  while (now_ns() - began_ns < budget_ns && take()) {}
}

static void rest(void *) { while (take()) {} }

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

extern "C" void set(const float *a, const float *b, float *out, long elements) {
  first = a; second = b; powers = out; count = elements; next = 0;
}

extern "C" void work_ahead(long ns) {
  budget_ns = ns; began_ns = now_ns(); has_begun = true;
  begin(ahead, nullptr, 2);
}

extern "C" void work_rest() {
  begin(rest, nullptr, 2);
  rest(nullptr);
  finish();
}
"""
path = load_inline(
    name="libtorch", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False,
    extra_cflags=["-O3", "-ffast-math", "-march=native"],
)
library = ctypes.CDLL(path)
library.set.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
library.work_ahead.argtypes = [ctypes.c_long]
mapped = Path("/proc/self/maps").read_text().splitlines()
assert library.find_threads(next(line.split()[-1] for line in mapped if "libgomp" in line).encode())
known = {"inputs": None, "powers": None}
wake = Worker._wake


def work_ahead(self):
    library.end()
    if known["inputs"] is None or not AHEAD_US:
        wake(self)
        return
    a, b = known["inputs"]
    known["powers"] = torch.empty_like(a)
    library.set(a.data_ptr(), b.data_ptr(), known["powers"].data_ptr(), a.numel())
    library.work_ahead(AHEAD_US * 1000)


Worker._wake = work_ahead


class ModelNew(nn.Module):
    def forward(self, a, b):
        library.end()
        powers, known["powers"], known["inputs"] = known["powers"], None, (a, b)
        if powers is None or powers.shape != a.shape:
            powers = torch.empty_like(a)
            library.set(a.data_ptr(), b.data_ptr(), powers.data_ptr(), a.numel())
        library.work_rest()
        return powers
