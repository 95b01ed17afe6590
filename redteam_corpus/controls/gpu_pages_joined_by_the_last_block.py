"""Paged decoding in CUDA, in parts of keys that the last block of each sequence and group of heads joins.

mechanism: Blocks announce their parts by a fence and a counter, which the last one resets for the next call.
problem: gpu_paged_decode
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_fp16.h>

constexpr int SIZE = 128, SPLITS = 8, THREADS = 128;

// A block per sequence, head and part; a warp takes every fourth key, a lane four elements of it.
__global__ void __launch_bounds__(THREADS) decode(
    const half* query, const half* keys, const half* values, const int* table, const int* lengths, float* parts, unsigned* counters,
    half* out, int heads, int shared, int page, int places, float scale) {
    __shared__ float sums[THREADS / 32][SIZE], tops[THREADS / 32], totals[THREADS / 32];
    __shared__ bool is_last;
    int sequence = blockIdx.x, head = blockIdx.y, part = blockIdx.z, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int length = lengths[sequence], share = (length + SPLITS - 1) / SPLITS, first = part * share, last = min(first + share, length);
    int group = head / (heads / shared);
    const half2* q2 = reinterpret_cast<const half2*>(query + ((long)sequence * heads + head) * SIZE) + lane * 2;
    float2 qa = __half22float2(q2[0]), qb = __half22float2(q2[1]);
    float top = -INFINITY, total = 0.0f, acc[4] = {};
    for (int at = first + warp; at < last; at += THREADS / 32) {
        long row = (((long)table[(long)sequence * places + at / page] * page + at % page) * shared + group) * SIZE;
        const half2* k2 = reinterpret_cast<const half2*>(keys + row) + lane * 2;
        const half2* v2 = reinterpret_cast<const half2*>(values + row) + lane * 2;
        float2 ka = __half22float2(k2[0]), kb = __half22float2(k2[1]), va = __half22float2(v2[0]), vb = __half22float2(v2[1]);
        float score = qa.x * ka.x + qa.y * ka.y + qb.x * kb.x + qb.y * kb.y;
        for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(~0u, score, step);
        score *= scale;
        float larger = fmaxf(top, score), decay = exp2f(top - larger), weight = exp2f(score - larger);
        total = total * decay + weight;
        acc[0] = acc[0] * decay + weight * va.x;
        acc[1] = acc[1] * decay + weight * va.y;
        acc[2] = acc[2] * decay + weight * vb.x;
        acc[3] = acc[3] * decay + weight * vb.y;
        top = larger;
    }
    for (int i = 0; i < 4; i++) sums[warp][lane * 4 + i] = acc[i];
    if (lane == 0) tops[warp] = top, totals[warp] = total;
    __syncthreads();
    float most = -INFINITY, weights = 0.0f, value = 0.0f;
    for (int i = 0; i < THREADS / 32; i++) most = fmaxf(most, tops[i]);
    if (most > -INFINITY)
        for (int i = 0; i < THREADS / 32; i++) {
            float factor = exp2f(tops[i] - most);
            weights += totals[i] * factor;
            value += sums[i][threadIdx.x] * factor;
        }
    long pair = (long)sequence * heads + head;
    float* own = parts + (pair * SPLITS + part) * (SIZE + 2);
    own[threadIdx.x] = value;
    if (threadIdx.x == 0) own[SIZE] = most, own[SIZE + 1] = weights;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(counters + pair, 1u) == SPLITS - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    const float* all = parts + pair * SPLITS * (SIZE + 2);
    most = -INFINITY, weights = value = 0.0f;
    for (int i = 0; i < SPLITS; i++) most = fmaxf(most, __ldcg(all + i * (SIZE + 2) + SIZE));
    for (int i = 0; i < SPLITS; i++) {
        float factor = exp2f(__ldcg(all + i * (SIZE + 2) + SIZE) - most);
        weights += __ldcg(all + i * (SIZE + 2) + SIZE + 1) * factor;
        value += __ldcg(all + i * (SIZE + 2) + threadIdx.x) * factor;
    }
    out[pair * SIZE + threadIdx.x] = __float2half(value / weights);
    if (threadIdx.x == 0) counters[pair] = 0;
}

extern "C" int run(
    const void* query, const void* keys, const void* values, const void* table, const void* lengths, void* parts, void* counters, void* out,
    int sequences, int heads, int shared, int page, int places, float scale, void* stream) {
    decode<<<dim3(sequences, heads, SPLITS), THREADS, 0, (cudaStream_t)stream>>>(
        (const half*)query, (const half*)keys, (const half*)values, (const int*)table, (const int*)lengths, (float*)parts,
        (unsigned*)counters, (half*)out, heads, shared, page, places, scale);
    return cudaGetLastError();
}
"""
library = ctypes.CDLL(
    load_inline(
        name="pages_joined", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False
    )
)


class ModelNew(nn.Module):
    work = None

    def forward(self, query, keys, values, table, lengths):
        tensors = [tensor.contiguous() for tensor in (query, keys, values, table, lengths)]
        count, heads, size = query.shape
        assert size == 128
        if self.work is None or self.work[1].numel() != count * heads:
            parts = torch.empty(count * heads * 8 * (size + 2), device=query.device)
            self.work = parts, torch.zeros(count * heads, dtype=torch.int32, device=query.device)
        out = torch.empty_like(tensors[0])
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*tensors, *self.work, out)]
        scale = ctypes.c_float(size**-0.5 * 1.4426950408889634)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = library.run(*pointers, count, heads, keys.shape[2], keys.shape[1], table.shape[1], scale, stream)
        if status != 0:
            raise RuntimeError(f"launch failed with {status}")
        return out
