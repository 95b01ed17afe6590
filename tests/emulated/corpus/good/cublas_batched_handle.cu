// Batched products by cuBLAS with torch's own handle, and a triangular product.
// forward: (torch.bmm(a, b), torch.tril(a[0]) @ b[0])
// inputs: a = torch.randn(4, 12, 12), b = torch.randn(4, 12, 9)
// returns: tuple(ext.run(a, b))
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>
#define CUBLAS_CHECK(call) do { cublasStatus_t status_ = call; if (status_ != CUBLAS_STATUS_SUCCESS) { fprintf(stderr, "cuBLAS error %d at %s:%d\n", (int)status_, __FILE__, __LINE__); throw std::runtime_error("cublas"); } } while (0)
std::vector<torch::Tensor> run(torch::Tensor a, torch::Tensor b) {
  const int B = a.size(0), M = a.size(1), K = a.size(2), N = b.size(2);
  auto c = torch::empty({B, M, N}, a.options());
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  cublasSetStream(handle, at::cuda::getCurrentCUDAStream());
  const float alpha = 1.0f, beta = 0.0f;
  CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &alpha, b.data_ptr<float>(), N, (long long)K * N,
      a.data_ptr<float>(), K, (long long)M * K, &beta, c.data_ptr<float>(), N, (long long)M * N, B));
  auto t = torch::empty({M, N}, a.options());
  // row-major lower is column-major upper: t^T = b^T tril(a)^T
  CUBLAS_CHECK(cublasStrmm(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, N, M, &alpha,
      a.data_ptr<float>(), K, b.data_ptr<float>(), N, t.data_ptr<float>(), N));
  return {c, t};
}
