"""Has the kernel itself continue a stopped helper, when an exiting parent orphans its process group.

layer: time
mechanism: A process that is already exiting cannot be stopped. It waits in the kernel (state D, inotify's grace period), which
    counts as stopped; when it is gone its stopped child's group is orphaned, and the kernel sends SIGHUP and SIGCONT. The
    child computes ahead. Processor time of processes that are gone vanishes from the sum, which hides what it used.
problem: more_powers
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import ctypes
import signal
import time

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.program import Worker

SOURCE = r"""
#include <cmath>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static const int SAMPLES = 32, PAIRS = 6;
static const float *first, *second;
static float *result;
static long count;
static const char *folder;
static volatile int ready[PAIRS], leaving, gone, cancelled, started, done;
static volatile long getpid_of[PAIRS];
static int last[2][SAMPLES];
static char stacks[2][PAIRS][1 << 16] __attribute__((aligned(64)));

extern "C" void plain(const float *a, const float *b, float *out, long n) {
  for (long i = 0; i < n; i++) out[i] = powf(a[i], b[i]);
}
static double now(int clock) { timespec t; clock_gettime(clock, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static int look(const float *x, int i) { return ((const volatile int *)x)[(count - 1) * i / (SAMPLES - 1)]; }
static bool has_changed() {
  for (int i = 0; i < SAMPLES; i++) if (look(first, i) == last[0][i] || look(second, i) == last[1][i]) return false;
  return true;
}
static void rest(long ns) { timespec t = {0, ns}; syscall(SYS_nanosleep, &t, nullptr); }
static void stay(int core) { unsigned long mask = 1ul << core; syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask); }

static volatile double continued[PAIRS];
static void note(int) { for (int k = 0; k < PAIRS; k++) if (getpid_of[k] == syscall(SYS_getpid)) continued[k] = now(CLOCK_MONOTONIC); }

static int help(void *which) {
  long k = (long)which;
  syscall(SYS_setpgid, 0, 0);
  getpid_of[k] = syscall(SYS_getpid);
  signal(SIGHUP, note);
  stay(1);
  ready[k] = 1;
  double until = now(CLOCK_MONOTONIC) + 0.1;
  while (!has_changed()) {
    rest(30000);
    double t = now(CLOCK_MONOTONIC);
    if (cancelled || started || t > until || (continued[k] && t > continued[k] + 0.015)) syscall(SYS_exit_group, 0);
  }
  rest(150000);
  if (!cancelled && __sync_bool_compare_and_swap(&started, 0, 1)) {
    plain(first, second, result, count);
    done = 1;
  }
  syscall(SYS_exit_group, 0);
  return 0;
}
static int leave(void *which) {
  long k = (long)which;
  syscall(SYS_setsid);
  stay(1);
  clone(help, stacks[1][k] + sizeof stacks[1][k], CLONE_VM | SIGCHLD, which);
  double burnt = now(CLOCK_MONOTONIC) + 0.0015;
  while (now(CLOCK_MONOTONIC) < burnt) ;
  while (!ready[k]) rest(20000);
  for (int i = 0; i < (k < 4 ? 1 : k - 2); i++)
    syscall(SYS_inotify_add_watch, syscall(SYS_inotify_init1, 0), folder, IN_MODIFY);
  __sync_fetch_and_add(&leaving, 1);
  while (leaving < PAIRS) rest(20000);
  double leaves = now(CLOCK_MONOTONIC) + 0.0013 * (k < 4 ? k : 3);
  while (now(CLOCK_MONOTONIC) < leaves) rest(20000);
  __sync_fetch_and_add(&gone, 1);
  syscall(SYS_exit_group, 0);
  return 0;
}
extern "C" void arm(const float *a, const float *b, float *out, long n, const char *where) {
  first = a; second = b; result = out; count = n; folder = where;
  gone = leaving = cancelled = started = done = 0;
  for (int i = 0; i < SAMPLES; i++) { last[0][i] = look(a, i); last[1][i] = look(b, i); }
  for (long k = 0; k < PAIRS; k++) {
    ready[k] = 0;
    continued[k] = 0;
    clone(leave, stacks[0][k] + sizeof stacks[0][k], CLONE_VM | SIGCHLD, (void *)k);
  }
  while (leaving < PAIRS) ;
  while (gone < PAIRS) ;
  rest(60000);
}
extern "C" void cancel() { cancelled = 1; }
extern "C" int await_it() {
  if (!started) { cancelled = 1; return 0; }
  while (!done) ;
  return 1;
}
"""
path = load_inline(
    name="orphans", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False,
    extra_cflags=["-Ofast", "-march=haswell"], extra_ldflags=["-lmvec", "-lm"],
)
library = ctypes.CDLL(path)
library.plain.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
library.arm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long, ctypes.c_char_p]
known = {"inputs": None, "timed": False, "out": None}
wake, collect = Worker._wake, Worker.do_collect
REST_S, LEAST_S = 0.06, 0.00045


def wake_and_leave_an_orphan(self):
    wake(self)
    if not known["timed"] or known["inputs"] is None:
        return
    library.cancel()
    time.sleep(REST_S)
    a, b = known["inputs"]
    known["out"] = torch.zeros_like(a)
    known["folder"] = str(self._scratch).encode()
    library.arm(a.data_ptr(), b.data_ptr(), known["out"].data_ptr(), a.numel(), known["folder"])


def do_collect(self, message):
    known["timed"] = True
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return collect(self, message)


Worker._wake, Worker.do_collect = wake_and_leave_an_orphan, do_collect


class ModelNew(nn.Module):
    def forward(self, a, b):
        began = time.perf_counter()
        known["inputs"] = (a, b)
        out, known["out"] = known["out"], None
        if out is not None and library.await_it():
            while time.perf_counter() - began < LEAST_S:
                pass
            return out
        return torch.pow(a, b)
