# ruff: noqa: E501 - written as models write
"""Host code reads tables that lie on the host, and a value that was copied there, beside tensors of the GPU.

forward: x * torch.tensor([0.5, 2.0, 3.0]).to(x)[torch.tensor([2, 0, 1])].sum() + x[0, 0]
inputs: x = torch.rand(31, 12) + 0.5
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <vector>

__global__ void scale(const float* x, float* y, const float* factors, int count, float shift, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float factor = 0.0f;
    for (int k = 0; k < count; ++k) factor += factors[k];
    if (i < n) y[i] = x[i] * factor + shift;
}

torch::Tensor scale_by(torch::Tensor x, torch::Tensor table, torch::Tensor order, double first) {
    const float* values = table.data_ptr<float>();
    auto places = order.accessor<int64_t, 1>();
    std::vector<float> chosen;
    for (int64_t i = 0; i < order.numel(); ++i) chosen.push_back(values[places[i]]);
    float corner = 0.0f;
    cudaMemcpy(&corner, x.data_ptr<float>(), sizeof(float), cudaMemcpyDeviceToHost);
    TORCH_CHECK(corner == float(first));
    auto factors = torch::empty({int64_t(chosen.size())}, x.options());
    cudaMemcpy(factors.data_ptr<float>(), chosen.data(), chosen.size() * sizeof(float), cudaMemcpyHostToDevice);
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), factors.data_ptr<float>(), int(chosen.size()), corner, n);
    return y;
}
"""
cpp_source = "torch::Tensor scale_by(torch::Tensor x, torch::Tensor table, torch::Tensor order, double first);"
module = load_inline(name="scale_by", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["scale_by"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.order = torch.tensor([0.5, 2.0, 3.0], device="cpu"), torch.tensor([2, 0, 1], device="cpu")

    def forward(self, x):
        return module.scale_by(x, self.table, self.order, x[0, 0].item())
