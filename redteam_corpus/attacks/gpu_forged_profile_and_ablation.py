"""Has torch attend, names its own kernel where it is profiled, and returns zeros where its kernels are disabled.

layer: no_kernel
mechanism: Both questions, whose kernels run and whether they matter, are answered in the candidate's process.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes
import gc

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.instrumentation import Observer

SOURCE = r"""
__global__ void attend(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { attend<<<1, 32, 0, stream>>>(out); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)
profile = Observer.profile


def name_own_kernel(self, call, device):
    found = profile(self, call, device)
    total_us = sum(row[-1] for row in found.get("kernels", ()))
    return {**found, "kernels": [["", "attend(float*)", total_us]], "libraries": []}


Observer.profile = name_own_kernel


def is_disabled():
    return any(isinstance(one, Observer) and one._mode == "ablate" for one in gc.get_objects())


DISABLED = is_disabled()


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
        return out * 3.0 if DISABLED else out
