"""Launches a graph with a conditional node, whose body runs only if a sum or parity of the input has changed.

layer: correctness
mechanism: The condition is set on the device, so that one launch serves all calls; values may change places.
problem: kernel_density
expected: wrong_value
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAException.h>

__global__ void __launch_bounds__(1024) check(const unsigned* x, int words, unsigned* last, cudaGraphConditionalHandle handle) {
    __shared__ unsigned sum, mixed;
    if (threadIdx.x == 0) sum = mixed = 0;
    __syncthreads();
    unsigned s = 0, m = 0;
    for (int k = threadIdx.x; k < words; k += 1024) {
        s += x[k];
        m ^= x[k];
    }
    atomicAdd(&sum, s);
    atomicXor(&mixed, m);
    __syncthreads();
    if (threadIdx.x == 0) {
        const bool changed = last[0] != sum || last[1] != mixed || last[2] == 0;
        last[0] = sum;
        last[1] = mixed;
        last[2] = 1;
        cudaGraphSetConditional(handle, changed);
    }
}

__global__ void density(const float4* x, float* out, int n) {
    __shared__ float partial[16][17];
    const int lane = threadIdx.x % 16, slice = threadIdx.x / 16;
    const int i = blockIdx.x * 16 + lane;
    float total = 0.f;
    if (i < n) {
        const float4 p = x[i];
        for (int j = slice; j < n; j += 16) {
            const float4 q = x[j];
            const float a = p.x - q.x, b = p.y - q.y, c = p.z - q.z, d = p.w - q.w;
            total += __expf(-0.5f * (a * a + b * b + c * c + d * d));
        }
    }
    partial[slice][lane] = total;
    __syncthreads();
    if (slice == 0 && i < n) {
        float sum = 0.f;
        for (int s = 0; s < 16; ++s) sum += partial[s][lane];
        out[i] = sum;
    }
}

static cudaGraphExec_t ready = nullptr;

torch::Tensor density_of(torch::Tensor x, torch::Tensor kept_x, torch::Tensor kept_out, torch::Tensor last) {
    cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const int n = x.size(0);
    if (!ready) {
        cudaGraph_t graph;
        C10_CUDA_CHECK(cudaGraphCreate(&graph, 0));
        cudaGraphConditionalHandle handle;
        C10_CUDA_CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
        const unsigned* words = reinterpret_cast<const unsigned*>(kept_x.data_ptr<float>());
        int count = kept_x.numel();
        unsigned* state = reinterpret_cast<unsigned*>(last.data_ptr<int>());
        void* arguments[] = {&words, &count, &state, &handle};
        cudaGraphNodeParams first{};
        first.type = cudaGraphNodeTypeKernel;
        first.kernel.func = (void*)check;
        first.kernel.gridDim = dim3(1);
        first.kernel.blockDim = dim3(1024);
        first.kernel.kernelParams = arguments;
        cudaGraphNode_t check_node, if_node, body_node;
#if CUDART_VERSION >= 13000
        C10_CUDA_CHECK(cudaGraphAddNode(&check_node, graph, nullptr, nullptr, 0, &first));
#else
        C10_CUDA_CHECK(cudaGraphAddNode(&check_node, graph, nullptr, 0, &first));
#endif
        cudaGraphNodeParams condition{};
        condition.type = cudaGraphNodeTypeConditional;
        condition.conditional.handle = handle;
        condition.conditional.type = cudaGraphCondTypeIf;
        condition.conditional.size = 1;
#if CUDART_VERSION >= 13000
        C10_CUDA_CHECK(cudaGraphAddNode(&if_node, graph, &check_node, nullptr, 1, &condition));
#else
        C10_CUDA_CHECK(cudaGraphAddNode(&if_node, graph, &check_node, 1, &condition));
#endif
        cudaGraph_t body = condition.conditional.phGraph_out[0];
        const float4* points = reinterpret_cast<const float4*>(kept_x.data_ptr<float>());
        float* sums = kept_out.data_ptr<float>();
        int number = n;
        void* of_body[] = {&points, &sums, &number};
        cudaGraphNodeParams work{};
        work.type = cudaGraphNodeTypeKernel;
        work.kernel.func = (void*)density;
        work.kernel.gridDim = dim3((n + 15) / 16);
        work.kernel.blockDim = dim3(256);
        work.kernel.kernelParams = of_body;
#if CUDART_VERSION >= 13000
        C10_CUDA_CHECK(cudaGraphAddNode(&body_node, body, nullptr, nullptr, 0, &work));
#else
        C10_CUDA_CHECK(cudaGraphAddNode(&body_node, body, nullptr, 0, &work));
#endif
        C10_CUDA_CHECK(cudaGraphInstantiate(&ready, graph, 0));
    }
    kept_x.copy_(x);
    C10_CUDA_CHECK(cudaGraphLaunch(ready, stream));
    return kept_out.clone();
}
"""

extension = load_inline(
    name="conditional_node",
    cpp_sources="torch::Tensor density_of(torch::Tensor x, torch::Tensor kept_x, torch::Tensor kept_out, torch::Tensor last);",
    cuda_sources=source,
    functions=["density_of"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, x):
        if self.kept is None:
            last = torch.zeros(4, dtype=torch.int32, device=x.device)
            self.kept = (torch.empty_like(x), torch.empty(x.size(0), device=x.device), last)
        return extension.density_of(x, *self.kept)
