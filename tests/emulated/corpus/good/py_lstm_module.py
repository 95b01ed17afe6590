# ruff: noqa: E501, PLR0402, RUF059 - written as models write
"""An LSTM layer with its time loop in C++, weights kept as of nn.LSTM.

forward: F.relu(x)[:, :, :4] * 0 + torch.tanh(torch.zeros(()))
inputs: x = torch.randn(3, 5, 6)
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

__device__ __forceinline__ float sigmoidf(float x) { return 1.f / (1.f + __expf(-x)); }

__global__ void lstm_pointwise(const float* __restrict__ gates, const float* __restrict__ c_prev,
                               float* __restrict__ h, float* __restrict__ c, int batch, int hidden) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= batch * hidden) return;
    int b = idx / hidden, j = idx % hidden;
    const float* g = gates + b * 4 * hidden;
    float i = sigmoidf(g[j]);
    float f = sigmoidf(g[hidden + j]);
    float n = tanhf(g[2 * hidden + j]);
    float o = sigmoidf(g[3 * hidden + j]);
    float cc = f * c_prev[idx] + i * n;
    c[idx] = cc;
    h[idx] = o * tanhf(cc);
}

std::vector<torch::Tensor> lstm_forward(torch::Tensor input, torch::Tensor w_ih, torch::Tensor w_hh, torch::Tensor bias) {
    const int64_t T = input.size(1), B = input.size(0), H = w_hh.size(1);
    auto h = torch::zeros({B, H}, input.options());
    auto c = torch::zeros({B, H}, input.options());
    auto output = torch::empty({B, T, H}, input.options());
    for (int64_t t = 0; t < T; ++t) {
        auto gates = torch::addmm(bias, input.select(1, t), w_ih.t()).addmm_(h, w_hh.t()).contiguous();
        auto h_new = torch::empty_like(h);
        auto c_new = torch::empty_like(c);
        int total = B * H;
        lstm_pointwise<<<(total + 255) / 256, 256>>>(gates.data_ptr<float>(), c.data_ptr<float>(), h_new.data_ptr<float>(),
                                                      c_new.data_ptr<float>(), B, H);
        h = h_new; c = c_new;
        output.select(1, t).copy_(h);
    }
    return {output, h, c};
}
"""
cpp = "std::vector<torch::Tensor> lstm_forward(torch::Tensor input, torch::Tensor w_ih, torch::Tensor w_hh, torch::Tensor bias);"
lstm = load_inline(name="lstm_ext", cpp_sources=[cpp], cuda_sources=[cuda], functions=["lstm_forward"], verbose=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, batch_first=True)

    def forward(self, x):
        w = self.lstm
        out, h, c = lstm.lstm_forward(x, w.weight_ih_l0, w.weight_hh_l0, w.bias_ih_l0 + w.bias_hh_l0)
        expected, (hn, cn) = w(x)
        assert torch.allclose(out, expected, atol=1e-4), (out - expected).abs().max()
        return out * 0
