"""Running sums of rows by cub::BlockScan, one block per row with a carry.

mechanism: Instances of a library's templates in the program's own kernel.
problem: cumulative_sum_of_rows
expected: correct
device: gpu
timed: yes
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <algorithm>
#define STREAM at::cuda::getCurrentCUDAStream()
#include <cub/cub.cuh>
constexpr int T = 256, ITEMS = 8;
struct Carry {
    float total;
    __device__ float operator()(float block) { float old = total; total += block; return old; }
};
__global__ void __launch_bounds__(T) running_kernel(const float* x, float* out, int n) {
    using Load = cub::BlockLoad<float, T, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<float, T, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<float, T>;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; typename Scan::TempStorage scan; } temp;
    const float* in = x + (size_t)blockIdx.x * n;
    float* to = out + (size_t)blockIdx.x * n;
    Carry carry{0.f};
    for (int start = 0; start < n; start += T * ITEMS) {
        float items[ITEMS];
        Load(temp.load).Load(in + start, items, n - start, 0.f);
        __syncthreads();
        Scan(temp.scan).InclusiveSum(items, items, carry);
        __syncthreads();
        Store(temp.store).Store(to + start, items, n - start);
        __syncthreads();
    }
}
torch::Tensor running(torch::Tensor x) {
    const at::cuda::CUDAGuard guard(x.device());
    x = x.contiguous();
    auto out = torch::empty_like(x);
    int n = x.size(-1);
    running_kernel<<<x.numel() / n, T, 0, STREAM>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

cpp_source = r"""
torch::Tensor running(torch::Tensor x);
"""

extension = load_inline(
    name="cumsum_cub",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=['running'],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return extension.running(x)
