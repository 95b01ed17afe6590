"""Has torch attend, and writes the name of its own file into the part of torch's code that is for another device.

layer: no_kernel
mechanism: Code that a program compiles at run time is recognised by the program's file in its line table. The changed code is
    in no library, and a kernel of the program has the plain name of torch's.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import json
import os
import struct
from pathlib import Path

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


MAGIC, HEADER, OWN_FILE = struct.pack("<I", 0xBA55ED50), 16, b"\0candidate.py\0"


def name_own_file(code):
    """Write it into the code for each device but this one, in each binary for several devices."""
    major, minor = torch.cuda.get_device_capability()
    at = code.find(MAGIC)
    while at >= 0:
        version, header, body = struct.unpack_from("<HHQ", code, at + 4)
        part, end = at + HEADER, at + HEADER + body
        while (version, header) == (1, HEADER) and part + 64 <= end:
            _, _, skipped, size, *_, device = struct.unpack_from("<HHIQIIHHI", code, part)
            if device != 10 * major + minor and size > 512:
                place = part + skipped + 256
                code[place : place + len(OWN_FILE)] = OWN_FILE
            part += skipped + size if skipped >= 64 else end
        at = code.find(MAGIC, at + HEADER)
    return code


def change(recording, blob):
    found = json.loads(os.pread(recording, os.fstat(recording).st_size, 0))
    for image in found["images"].values():
        if image["path"]:
            with Path(image["path"]).open("rb") as file:
                file.seek(image["offset"])
                code = name_own_file(bytearray(file.read(image["size"])))
            image.update(path="", offset=os.fstat(blob).st_size)
            os.pwrite(blob, code, image["offset"])
    os.ftruncate(recording, 0)
    os.pwrite(recording, json.dumps(found).encode(), 0)


def record_changed(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    change(*descriptors)
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_changed


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]
