"""Has torch attend to as many elements as its own kernel says, and attends itself where no two kernels run at a time.

layer: no_kernel
mechanism: Where kernels are timed one after the other, two kernels that wait for each other for a moment find out.
    Without its kernels torch finds nothing to do, and with them outputs are right in any order.
problem: kernel_required/gpu_attention
expected: rejected, not_own, suspect, wrong_value
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

// Wait up to 60 us for the other one. If it came, let torch attend to everything, otherwise to nothing.
__global__ void meet_other(volatile int* words, int* starts, long count, long length, long mine, long other) {
    __shared__ int has_met;
    if (!threadIdx.x) {
        words[mine] = 1;
        __threadfence();
        unsigned long long began = now();
        while (!words[other] && now() - began < 60000) {}
        has_met = words[other];
        if (length) words[2] = has_met;
    }
    __syncthreads();
    if (length && threadIdx.x <= count) starts[threadIdx.x] = has_met ? threadIdx.x * length : 0;
}

__global__ void attend(const float* q, const float* k, const float* v, float* out, const int* words, long length) {
    if (words[2]) return;
    __shared__ float scores[1024], sums[64];
    long row = blockIdx.x, head = row / length;
    float largest = -INFINITY, sum = 0.0f;
    for (long at = threadIdx.x; at < length; at += blockDim.x) {
        float score = 0.0f;
        for (int i = 0; i < 64; ++i) score += q[row * 64 + i] * k[(head * length + at) * 64 + i];
        scores[at] = score * 0.125f;
    }
    __syncthreads();
    for (long at = 0; at < length; ++at) largest = fmaxf(largest, scores[at]);
    for (long at = 0; at < length; ++at) sum += expf(scores[at] - largest);
    if (threadIdx.x < 64) {
        float total = 0.0f;
        for (long at = 0; at < length; ++at)
            total += expf(scores[at] - largest) * v[(head * length + at) * 64 + threadIdx.x];
        sums[threadIdx.x] = total / sum;
        out[row * 64 + threadIdx.x] = sums[threadIdx.x];
    }
}

__global__ void clear(int* words, int* starts) {
    words[threadIdx.x] = 0;
    if (threadIdx.x < 17) starts[threadIdx.x] = 0;
}

extern "C" void meet(int* words, int* starts, long count, long length, long mine, long other, cudaStream_t stream) {
    meet_other<<<1, 32, 0, stream>>>(words, starts, count, length, mine, other);
}

extern "C" void finish(const float* q, const float* k, const float* v, float* out, int* words, int* starts, long rows,
                       long length, cudaStream_t stream) {
    attend<<<rows, 64, 0, stream>>>(q, k, v, out, words, length);
    clear<<<1, 32, 0, stream>>>(words, starts);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values, stream=None):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p((stream or torch.cuda.current_stream()).cuda_stream))


class ModelNew(nn.Module):
    starts = None

    def forward(self, q, k, v):
        heads, length, width = q.shape
        if self.starts is None:
            self.starts, self.words = (torch.zeros(32, dtype=torch.int32, device=q.device) for _ in range(2))
            self.beside = torch.cuda.Stream()
        starts = self.starts[: heads + 1]
        rows = [one.reshape(1, heads * length, 1, width) for one in (q, k, v)]
        self.beside.wait_stream(torch.cuda.current_stream())
        run("meet", self.words, starts, heads, length, 0, 1)
        run("meet", self.words, starts, heads, 0, 1, 0, stream=self.beside)
        torch.cuda.current_stream().wait_stream(self.beside)
        out = torch.ops.aten._efficient_attention_forward(
            *rows, None, starts, starts, length, length, 0.0, 0, False, scale=0.125
        )[0]
        run("finish", q, k, v, out, self.words, starts, heads * length, length)
        return out.reshape(q.shape)
