"""Has torch attend, and adds a zero byte and a name of its own to the names of torch's kernels in its recording.

layer: no_kernel
mechanism: The driver looks a kernel up by a text that ends at the first zero byte; whose kernel it is, is decided by all of
    its name. The code is moved from torch's file into the recorded bytes.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.recorder import driver_calls

SOURCE = r"""
__global__ void attend(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { attend<<<1, 32, 0, stream>>>(out); }
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
record = driver_calls.CallRecorder.record


def rename(recording, blob):
    found = json.loads(os.pread(recording, os.fstat(recording).st_size, 0))
    for image in found["images"].values():
        if image["path"]:
            with Path(image["path"]).open("rb") as file:
                file.seek(image["offset"])
                code = file.read(image["size"])
            image.update(path="", offset=os.fstat(blob).st_size)
            os.pwrite(blob, code, image["offset"])
    for function in found["functions"]:
        function["name"] += "\0 attend"
    os.ftruncate(recording, 0)
    os.pwrite(recording, json.dumps(found).encode(), 0)


def record_renamed(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    rename(*descriptors)
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_renamed


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
