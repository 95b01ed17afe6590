"""Has cuBLAS solve, out of a copy in a file without a name, and mentions the names of its kernels.

layer: no_kernel
mechanism: Code that lies in one of the machine's libraries is not the program's; a copy lies in none. No code of the
    evaluator's is touched.
problem: kernel_required/gpu_triangular
expected: rejected, not_own, suspect
device: gpu
timed: yes
"""

import ctypes
import os
import re
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

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
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
DEEP_BINDING = 8
LEFT, LOWER, NOT_TRANSPOSED, UNIT = 0, 0, 0, 1
RIGHT, UPPER = 1, 1
handle = ctypes.c_void_p()


def load_copy():
    path = re.search(r"\S*/libcublas\.so\S*$", Path("/proc/self/maps").read_text(), re.MULTILINE)[0]
    descriptor = os.memfd_create("solver")
    with Path(path).open("rb") as file:
        while part := file.read(1 << 20):
            os.write(descriptor, part)
    return ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=DEEP_BINDING)


class ModelNew(nn.Module):
    library = None

    def forward(self, a, b):
        if self.library is None:
            self.library = load_copy()
            self.scale = ctypes.c_float(1.0)
            if self.library.cublasCreate_v2(ctypes.byref(handle)):
                raise RuntimeError("cublasCreate failed")
        scaled, out = a * 0.001, b.clone()
        # Row by row: out.t() @ scaled.t() solved from the right, where the lower triangle is the upper one.
        self.library.cublasSetStream_v2(handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        status = self.library.cublasStrsm_v2(
            handle, RIGHT, UPPER, NOT_TRANSPOSED, UNIT, out.shape[1], out.shape[0], ctypes.byref(self.scale),
            ctypes.c_void_p(scaled.data_ptr()), scaled.shape[1], ctypes.c_void_p(out.data_ptr()), out.shape[1],
        )  # fmt: skip
        if status:
            raise RuntimeError(f"cublasStrsm failed with {status}")
        return out
