"""Has a thread of its own that polls for work, at first without rest.

mechanism: Its own thread uses processor time between calls, and has nothing to do there.
problem: middle_add
expected: correct
device: cpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""#include <chrono>

#include <atomic>
#include <thread>
#include <immintrin.h>
static const float *A, *B; static float *O; static long N;
static std::atomic<long> generation{0}, finished{0};
static void loop() {
  long seen = 0;
  while (true) {
    int tries = 0;
    while (generation.load(std::memory_order_acquire) == seen) {
      if (++tries < 2000) _mm_pause(); else std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    seen++;
    for (long j = N / 2; j < N; j++) O[j] = A[j] + B[j];
    finished.store(seen, std::memory_order_release);
  }
}
extern "C" void add(const float *a, const float *b, float *out, long n) {
  static bool begun = (std::thread(loop).detach(), true); (void)begun;
  A = a; B = b; O = out; N = n;
  long g = generation.fetch_add(1, std::memory_order_release) + 1;
  for (long j = 0; j < n / 2; j++) out[j] = a[j] + b[j];
  while (finished.load(std::memory_order_acquire) != g) _mm_pause();
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
