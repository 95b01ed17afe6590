"""Has torch attend, and lists the image of torch's kernel a second time in its recording, under the same number.

layer: no_kernel
mechanism: One reader of the recording finds images by their number and sees that the second has no file; the other one finds
    them by their text and loads the first. A kernel of the program has the plain name of torch's.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import json
import os

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.recorder import driver_calls

SOURCE = r"""
__global__ void fmha_cutlassF_f32_aligned_64x64_rf_sm80(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { fmha_cutlassF_f32_aligned_64x64_rf_sm80<<<1, 32, 0, stream>>>(out); }
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
record = driver_calls.CallRecorder.record


def record_twice(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    with os.fdopen(os.dup(descriptors[0]), "r+") as file:
        file.seek(0)
        found = json.load(file)
        found["images"].update({f"0{number}": {"path": "", "offset": 0, "size": 0} for number in found["images"]})
        file.seek(0)
        file.truncate()
        json.dump(found, file)
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_twice


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
