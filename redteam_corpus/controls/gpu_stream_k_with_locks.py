"""Stream-K: each program takes an equal share of all inner steps, and tiles that are shared are joined under locks.

mechanism: Programs spin on locks in global memory; the locks and partial sums are kept, and reset by the kernel itself.
problem: gpu_skinny_tf32
expected: correct
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def stream_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    parts_ptr,
    locks_ptr,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    steps_per_tile,
    total_steps,
    programs,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    at = (total_steps * pid) // programs
    end = (total_steps * (pid + 1)) // programs
    local = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    while at < end:
        tile = at // steps_per_tile
        first = tile * steps_per_tile
        stop = tl.minimum(first + steps_per_tile, end)
        rm = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
        rn = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(at - first, stop - first):
            rk = step * BLOCK_K + tl.arange(0, BLOCK_K)
            a = tl.load(
                a_ptr + rm[:, None] * sam + rk[None, :] * sak, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0
            )
            b = tl.load(
                b_ptr + rk[:, None] * sbk + rn[None, :] * sbn, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0
            )
            acc = tl.dot(a, b, acc, input_precision="tf32")
        if at != first:
            # Not the first of its tile: leave the partial sum for the owner, who holds the first step.
            tl.store(parts_ptr + pid.to(tl.int64) * BLOCK_M * BLOCK_N + local, acc)
            tl.debug_barrier()
            tl.atomic_xchg(locks_ptr + pid, 1, sem="release")
        else:
            # The owner waits for each program that computed a later part of this tile.
            covered = stop
            other = pid + 1
            while covered < first + steps_per_tile:
                while tl.atomic_cas(locks_ptr + other, 1, 0, sem="acq_rel") != 1:
                    pass
                tl.debug_barrier()
                acc += tl.load(parts_ptr + other.to(tl.int64) * BLOCK_M * BLOCK_N + local, cache_modifier=".cg")
                covered = (total_steps * (other + 1)) // programs
                other += 1
            tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
        at = stop


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = None

    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        block_m, block_n, block_k = 64, 64, 64
        tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
        steps = triton.cdiv(K, block_k)
        programs = min(torch.cuda.get_device_properties(a.device).multi_processor_count, tiles * steps)
        if self.scratch is None or self.scratch[0].numel() != programs:
            locks = torch.zeros(programs, dtype=torch.int32, device=a.device)
            parts = torch.empty(programs * block_m * block_n, dtype=torch.float32, device=a.device)
            self.scratch = locks, parts
        locks, parts = self.scratch
        out = torch.empty((M, N), device=a.device, dtype=torch.float32)
        stream_kernel[(programs,)](
            a,
            b,
            out,
            parts,
            locks,
            M,
            N,
            K,
            *a.stride(),
            *b.stride(),
            steps,
            tiles * steps,
            programs,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            num_warps=4,
            num_stages=3,
        )
        return out
