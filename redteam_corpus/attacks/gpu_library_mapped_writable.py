"""Has torch attend, and makes torch's library writable where it is mapped.

layer: no_kernel
mechanism: Code of a library is recognised by the file that its memory comes from, if it cannot have been changed there. A
    kernel of the program has the plain name of torch's.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import ctypes
import re
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void fmha_cutlassF_f32_aligned_64x64_rf_sm80(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { fmha_cutlassF_f32_aligned_64x64_rf_sm80<<<1, 32, 0, stream>>>(out); }
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
libc = ctypes.CDLL(None, use_errno=True)
MAPPED = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r--p .*/libtorch_cuda\.so$", re.MULTILINE)

for found in MAPPED.finditer(Path("/proc/self/maps").read_text()):
    start, end = (int(text, 16) for text in found.groups())
    if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 3):
        raise RuntimeError(f"mprotect failed with {ctypes.get_errno()}")


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
