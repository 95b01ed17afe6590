"""Has torch attend, queues a function of the host so that no replay is possible, and names its own kernel where it is profiled.

layer: no_kernel
mechanism: Without a recording, whose kernels run is asked in a worker, where the program answers itself; and a call of that
    length takes hardly longer by the evaluator's clock.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
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

static void nothing(void*) {}

extern "C" void run(float* out, cudaStream_t stream) { attend<<<1, 32, 0, stream>>>(out); }
extern "C" int visit_host(cudaStream_t stream) { return cudaLaunchHostFunc(stream, nothing, nullptr); }
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
DISABLED = any(isinstance(one, Observer) and one._mode == "ablate" for one in gc.get_objects())


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
        if library.visit_host(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)):
            raise RuntimeError("cudaLaunchHostFunc failed")
        return out * 3.0 if DISABLED else out
