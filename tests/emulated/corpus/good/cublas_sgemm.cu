// A linear layer: cuBLAS multiplies, a kernel adds the bias.
// forward: F.linear(x, w, b)
// inputs: x = torch.randn(13, 22), w = torch.randn(9, 22), b = torch.randn(9)
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

__global__ void add_bias(float* y, const float* b, int n, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += b[i % columns];
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  int m = x.size(0), k = x.size(1), n = w.size(0);
  auto y = torch::empty({m, n}, x.options());
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  const float alpha = 1.0f, beta = 0.0f;
  cublasStatus_t status = cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &alpha, w.data_ptr<float>(), k,
                                      x.data_ptr<float>(), k, &beta, y.data_ptr<float>(), n);
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed");
  add_bias<<<(m * n + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>(), b.data_ptr<float>(), m * n, n);
  return y;
}
