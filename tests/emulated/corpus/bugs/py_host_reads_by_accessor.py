"""Host code takes the largest value with an accessor, which on a GPU would read memory that it cannot reach.

forward: x / x.max()
inputs: x = torch.rand(31, 12) + 0.5
finding: host_access
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>

__global__ void divide(const float* x, float* y, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / by;
}

torch::Tensor divide_by(torch::Tensor x, double by) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    divide<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), float(by), n);
    return y;
}
"""
cpp_source = r"""
#include <torch/extension.h>

torch::Tensor divide_by(torch::Tensor x, double by);

torch::Tensor divide_by_largest(torch::Tensor x) {
    auto values = x.accessor<float, 2>();
    float largest = values[0][0];
    for (int64_t row = 0; row < values.size(0); ++row)
        for (int64_t column = 0; column < values.size(1); ++column)
            largest = std::max<float>(largest, values[row][column]);
    return divide_by(x, largest);
}
"""
module = load_inline(
    name="divide_by_largest", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["divide_by_largest"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.divide_by_largest(x)
