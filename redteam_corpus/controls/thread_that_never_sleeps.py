"""Has a thread of its own that polls for work and never sleeps.

mechanism: Its own thread uses processor time whenever it is not stopped, as if it worked ahead.
problem: middle_add
expected: correct
device: cpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <atomic>
#include <immintrin.h>
#include <thread>
static const float *A, *B; static float *O; static long N;
static std::atomic<long> generation{0}, finished{0};
static void loop() {
  for (long seen = 1;; seen++) {
    while (generation.load() < seen) _mm_pause();
    for (long j = N / 2; j < N; j++) O[j] = A[j] + B[j];
    finished.store(seen);
  }
}
extern "C" void add(const float *a, const float *b, float *out, long n) {
  static bool begun = (std::thread(loop).detach(), true); (void)begun;
  A = a; B = b; O = out; N = n;
  long g = ++generation;
  for (long j = 0; j < n / 2; j++) out[j] = a[j] + b[j];
  while (finished.load() != g) _mm_pause();
}
"""
library = ctypes.CDLL(load_inline(name="k", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False,
    extra_cflags=["-O3", "-pthread"], extra_ldflags=["-pthread"]))


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        library.add(at(a), at(b), at(out), ctypes.c_long(out.numel()))
        return out
