"""Has a thread of its own that polls for work for a while, and then sleeps.

mechanism: Its own thread uses processor time after a call was over, while nobody asked for anything.
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
#include <condition_variable>
#include <immintrin.h>
#include <mutex>
#include <thread>
static const float *A, *B; static float *O; static long N;
static std::atomic<long> generation{0}, finished{0};
static std::mutex m; static std::condition_variable cv;
static void loop() {
  for (long seen = 1;; seen++) {
    for (int tries = 0; tries < 2000 && generation.load() < seen; tries++) _mm_pause();
    { std::unique_lock<std::mutex> lock(m); cv.wait(lock, [&] { return generation.load() >= seen; }); }
    for (long j = N / 2; j < N; j++) O[j] = A[j] + B[j];
    finished.store(seen);
  }
}
extern "C" void add(const float *a, const float *b, float *out, long n) {
  static bool begun = (std::thread(loop).detach(), true); (void)begun;
  long g;
  { std::lock_guard<std::mutex> lock(m); A = a; B = b; O = out; N = n; g = ++generation; }
  cv.notify_one();
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
