"""Has the kernel's timers do much work in interrupts while everything of it is stopped, and stops them in its own calls.

layer: time
mechanism: A timer descriptor that thousands of epoll entries watch wakes every one of them when it expires, with interrupts
    off, on the core where it was set: no process of the candidate's runs, and the time is charged to who is interrupted.
problem: more_powers
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
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
static const int TIMERS = 50, COPIES = 12, WATCHERS = 320;
static const double FIRST_MS = 4.0, STEP_MS = 1.0;
static int timers[TIMERS];
extern "C" int prepare() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  int watchers[WATCHERS], made = 0;
  for (int &watcher : watchers) watcher = epoll_create1(0);
  for (int &timer : timers) {
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    for (int i = 0; i < COPIES; i++) {
      int copy = dup(timer);
      epoll_event event = {EPOLLIN, {}};
      for (int watcher : watchers) made += epoll_ctl(watcher, EPOLL_CTL_ADD, copy, &event) == 0;
    }
  }
  return made;
}
extern "C" void set() {
  for (int i = 0; i < TIMERS; i++) {
    long ns = (FIRST_MS + STEP_MS * i) * 1e6;
    itimerspec when = {{0, 0}, {0, ns}};
    timerfd_settime(timers[i], 0, &when, nullptr);
  }
}
extern "C" void unset() {
  itimerspec never = {};
  for (int timer : timers) timerfd_settime(timer, 0, &never, nullptr);
}
"""
library = ctypes.CDLL(
    load_inline(name="rings", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
state = {"timed": False}
wake, collect = Worker._wake, Worker.do_collect


def wake_and_set(self):
    wake(self)
    if state["timed"]:
        library.set()


def do_collect(self, message):
    state["timed"] = True
    library.prepare()
    return collect(self, message)


Worker._wake, Worker.do_collect = wake_and_set, do_collect


class ModelNew(nn.Module):
    def forward(self, a, b):
        library.unset()
        return torch.pow(a, b)
