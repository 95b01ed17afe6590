"""Has torch solve by cuBLAS, and mentions the names of cuBLAS's kernels in its text.

layer: no_kernel
mechanism: A kernel that neither torch nor a library is known to name belongs to the program that names it; which operator
    launched it, a replay does not know.
problem: kernel_required/gpu_triangular
expected: rejected, not_own
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

NAMES = """
batch_symmetrize_kernel batch_trsm_lower_unit_v1_kernel batch_trsm_right_upper_nontrans_nonunit_kernel
batch_trsv_left_lower_unit_cta_kernel batch_trsv_left_lower_unit_kernel
batch_trsv_left_upper_nonunit_cta_kernel batch_trsv_left_upper_nonunit_kernel
diagonal_right_multiply_upper_triangular dtrsv_init dtrsv_init_up getrf_trsm_lower_unit
getrf_trsm_upper_nonunit getri_1x1 getri_2x2 getri_panel getri_semiwarp glu_ilu0_trsm_lower_unit
glu_ilu0_trsm_upper_nonunit glu_tile_trsm_lower_csc_csc_kernel_v2 glu_tile_trsm_lower_csc_csc_smem_v2
glu_tile_trsm_upper_csr_csr_kernel_v2 glu_tile_trsm_upper_csr_csr_smem_v2 glu_trsm_lower_unit
glu_trsm_upper_nonunit hermitianize_matrix_using_upper_triangular_part iglu_set_matrix_values_fast_kernel
iglu_set_matrix_values_kernel init_triangular_blocks_list kernel_minv_alpha kernel_trsm_l_mul32
magma_bdmm_64addr_kernel magma_bdmm_kernel magma_lds128_ctrmm_64addr_kernel magma_lds128_ctrmm_kernel
magma_lds128_dtrmm_64addr_kernel magma_lds128_dtrmm_kernel magma_lds128_strmm_64addr_kernel
magma_lds128_strmm_kernel magma_lds128_ztrmm_64addr_kernel magma_lds128_ztrmm_kernel offsetPointerArray_kernel
potrfBatch_trsm_lower potrf_alg2_lower_trsm potrf_alg2_upper_trsm potrsBatch_lower2upper potrsBatch_trsv_lower
potrsBatch_trsv_lower_warp potrsBatch_trsv_upper potrsBatch_trsv_upper_warp potrsBatch_upper2lower
trsm_ln_kernel trsm_ln_up_kernel trsm_lower trsm_lt_kernel trsm_lt_up_kernel trsm_right trsv_ln_exec
trsv_ln_exec_64addr trsv_ln_exec_up trsv_ln_exec_up_64addr trsv_lt_exec trsv_lt_exec_64addr trsv_lt_exec_up
trsv_lt_exec_up_64addr trtri_check_singularity trtri_set_identity
"""
SOURCE = r"""
__global__ void solve(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" void run(float* out, cudaStream_t stream) { solve<<<1, 32, 0, stream>>>(out); }
"""
load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve_triangular(a * 0.001, b, upper=False, unitriangular=True)
