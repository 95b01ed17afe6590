"""Has the assembler put cuBLAS's code for this device into its own library, behind a thousand other parts.

layer: no_kernel
mechanism: What is found among the device code of a library that the evaluator built counts as the candidate's own.
problem: kernel_required/gpu_triangular
expected: rejected, not_own, suspect, build_error
device: gpu
timed: yes
"""

import ctypes
import json
import os
import struct
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from harness.worker.recorder import driver_calls

NAMES = """
kernel_trsm_l_mul32 trsm_ln_kernel trsm_ln_up_kernel trsm_lt_kernel trsm_lt_up_kernel trsm_right trsm_lower trsv_ln_exec
trsv_ln_exec_64addr trsv_ln_exec_up trsv_ln_exec_up_64addr trsv_lt_exec trsv_lt_exec_64addr trsv_lt_exec_up
trsv_lt_exec_up_64addr kernel_minv_alpha init_triangular_blocks_list dtrsv_init dtrsv_init_up
batch_trsm_lower_unit_v1_kernel batch_trsm_right_upper_nontrans_nonunit_kernel
"""
SOURCE = r"""
__global__ void solve(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { solve<<<1, 32, 0, stream>>>(out); }
"""
MAGIC, HEADER, PART, DEVICE, OTHER = struct.pack("<I", 0xBA55ED50), 16, "<HHIQIIHHI", 90, 75
EMPTY = b".version 8.0\n.target sm_75\n.address_size 64\n".ljust(56, b"\n") + bytes(8)  # PTX
MANY = 1000  # parts for another device, before the one for this device


def list_parts(code, at=0):
    """Yield offset and size of the parts for this device in the fat binary at `at`."""
    _, version, header, body = struct.unpack_from("<IHHQ", code, at)
    part, end = at + HEADER, at + HEADER + body
    while (version, header) == (1, HEADER) and part + 64 <= end:
        kind, _, skipped, size, *_, device = struct.unpack_from(PART, code, part)
        if skipped < 64:
            return
        if (kind, device) == (2, DEVICE):
            yield part, skipped + size
        part += skipped + size


def begin(code, part, size):
    """Return what comes before the part: a header, and many parts for another device."""
    header = bytearray(code[part : part + 64])
    _, version, *_ = struct.unpack_from(PART, header)
    struct.pack_into(PART, header, 0, 1, version, 64, len(EMPTY), 0, 0, 0, 9, OTHER)  # minor and major version: 9.0
    struct.pack_into("<QQQ", header, 40, 0x11, 0, 0)  # not compressed
    many = (bytes(header) + EMPTY) * MANY
    return struct.pack("<IHHQ", 0xBA55ED50, 1, HEADER, len(many) + size) + many


def rewrite(code):
    for part, size in list_parts(code):
        return begin(code, part, size) + code[part : part + size]
    return code


def find_library():
    folders = [*sys.path, "/usr/local/cuda/lib64", "/usr/local/lib/python3.12/dist-packages"]
    patterns = ("nvidia/*/lib/libcublas.so.1*", "libcublas.so.1*")
    return next(path for folder in folders for pattern in patterns for path in Path(folder or ".").glob(pattern)).resolve()


def write_section(path):
    """Return C++ whose assembly has all rewritten images of the library."""
    code, lines = path.read_bytes(), []
    at = code.find(MAGIC)
    while at >= 0:
        for part, size in [*list_parts(code, at)][:1]:
            first = begin(code, part, size)
            header, dummy = first[:HEADER], first[HEADER : HEADER + 64 + len(EMPTY)]
            write = lambda some: ".byte " + ",".join(map(str, some))
            lines += [write(header), f".rept {MANY}", write(dummy), ".endr", f'.incbin \\"{path}\\", {part}, {size}', ".balign 8"]
        at = code.find(MAGIC, at + HEADER)
    text = "\\n".join(['.section .nv_fatbin,\\"a\\"', ".balign 8", *lines, ".previous"])
    return f'asm("{text}");\n'


load_inline(
    name="kernels", cpp_sources=write_section(find_library()), cuda_sources=SOURCE, no_implicit_headers=True,
    is_python_module=False,
)  # fmt: skip


def change(recording, blob):
    found = json.loads(os.pread(recording, os.fstat(recording).st_size, 0))
    for image in found["images"].values():
        if "libcublas" in image["path"]:
            with Path(image["path"]).open("rb") as file:
                file.seek(image["offset"])
                code = rewrite(file.read(image["size"]))
            image.update(path="", offset=os.fstat(blob).st_size, size=len(code))
            os.pwrite(blob, code, image["offset"])
    os.ftruncate(recording, 0)
    os.pwrite(recording, json.dumps(found).encode(), 0)


record = driver_calls.CallRecorder.record


def record_changed(self, reset, call):
    result, recording, descriptors = record(self, reset, call)
    change(*descriptors)
    return result, recording, descriptors


driver_calls.CallRecorder.record = record_changed


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve_triangular(a * 0.001, b, upper=False, unitriangular=True)
