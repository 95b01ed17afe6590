// The matrix products of cuBLAS, by torch's own. Matrices are in columns, so each is the transposed one in rows.
#pragma once
#include <ATen/ATen.h>
#include <emulator/runtime_api.h>
#include <library_types.h>

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_64F = 70 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99, CUBLAS_GEMM_DFALT_TENSOR_OP = 99 };
struct cublasContext {};
using cublasHandle_t = cublasContext*;

namespace harness_emulator __attribute__((visibility("hidden"))) {
inline cublasHandle_t getCurrentCUDABlasHandle() {
  static cublasContext only;
  return &only;
}
inline at::ScalarType scalar_type_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F: return at::kDouble;
    case CUDA_R_16F: return at::kHalf;
    case CUDA_R_16BF: return at::kBFloat16;
    case CUDA_R_8I: return at::kChar;
    case CUDA_R_32I: return at::kInt;
    default: return at::kFloat;
  }
}
// A column-major matrix in memory, as batches of rows x columns.
inline at::Tensor view_columns(const void* data, at::ScalarType type, int64_t rows, int64_t columns, int64_t leading, int64_t stride,
                               int64_t batches) {
  return at::from_blob(const_cast<void*>(data), {batches, rows, columns}, {stride, 1, leading}, at::TensorOptions().dtype(type));
}
inline cublasStatus_t multiply(cublasOperation_t a_op, cublasOperation_t b_op, int64_t m, int64_t n, int64_t k, double alpha,
                               const void* a, cudaDataType_t a_type, int64_t lda, int64_t a_stride, const void* b,
                               cudaDataType_t b_type, int64_t ldb, int64_t b_stride, double beta, void* c, cudaDataType_t c_type,
                               int64_t ldc, int64_t c_stride, int64_t batches) {
  if (m < 0 || n < 0 || k < 0 || lda < (a_op == CUBLAS_OP_N ? m : k) || ldb < (b_op == CUBLAS_OP_N ? k : n) || ldc < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool is_double = c_type == CUDA_R_64F;
  const at::ScalarType wide = is_double ? at::kDouble : at::kFloat;
  at::Tensor left = view_columns(a, scalar_type_of(a_type), a_op == CUBLAS_OP_N ? m : k, a_op == CUBLAS_OP_N ? k : m, lda, a_stride, batches);
  at::Tensor right = view_columns(b, scalar_type_of(b_type), b_op == CUBLAS_OP_N ? k : n, b_op == CUBLAS_OP_N ? n : k, ldb, b_stride, batches);
  if (a_op != CUBLAS_OP_N) { left = left.transpose(1, 2); }
  if (b_op != CUBLAS_OP_N) { right = right.transpose(1, 2); }
  at::Tensor out = view_columns(c, scalar_type_of(c_type), m, n, ldc, c_stride, batches);
  at::Tensor product = at::matmul(left.to(wide), right.to(wide)) * alpha;
  if (beta != 0.0) { product = product + out.to(wide) * beta; }
  out.copy_(product);
  return CUBLAS_STATUS_SUCCESS;
}
inline double number(double value) { return value; }
inline double number(const __half& value) { return value.harness_value(); }
inline double read_scalar(const void* at, cublasComputeType_t type) {
  if (type == CUBLAS_COMPUTE_64F) { return *static_cast<const double*>(at); }
  if (type == CUBLAS_COMPUTE_16F) { return double(static_cast<const __half*>(at)->harness_value()); }
  return double(*static_cast<const float*>(at));
}
}

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) { *handle = harness_emulator::getCurrentCUDABlasHandle(); return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) { *mode = CUBLAS_DEFAULT_MATH; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t mode) {
  return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
#define HARNESS_GEMM(Name, T, Type)                                                                                          \
  inline cublasStatus_t cublas##Name##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,   \
                                           const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) { \
    return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::number(*alpha), a, Type, lda, 0, b, Type, ldb, 0, harness_emulator::number(*beta), c, Type, ldc, 0, 1); \
  }                                                                                                                          \
  inline cublasStatus_t cublas##Name##gemmStridedBatched(                                                                    \
      cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda,  \
      long long sa, const T* b, int ldb, long long sb, const T* beta, T* c, int ldc, long long sc, int batches) {            \
    return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::number(*alpha), a, Type, lda, sa, b, Type, ldb, sb, harness_emulator::number(*beta), c, Type, ldc, sc, batches); \
  }
HARNESS_GEMM(S, float, CUDA_R_32F)
HARNESS_GEMM(D, double, CUDA_R_64F)
HARNESS_GEMM(H, __half, CUDA_R_16F)
inline cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType_t at, int lda, const void* b, cudaDataType_t bt, int ldb,
                                   const void* beta, void* c, cudaDataType_t ct, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::read_scalar(alpha, compute), a, at, lda, 0, b, bt, ldb, 0,
                                    harness_emulator::read_scalar(beta, compute), c, ct, ldc, 0, 1);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                                 const void* alpha, const void* a, cudaDataType_t at, int lda, long long sa, const void* b,
                                                 cudaDataType_t bt, int ldb, long long sb, const void* beta, void* c, cudaDataType_t ct,
                                                 int ldc, long long sc, int batches, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::read_scalar(alpha, compute), a, at, lda, sa, b, bt, ldb, sb,
                                    harness_emulator::read_scalar(beta, compute), c, ct, ldc, sc, batches);
}
inline cublasStatus_t cublasSgemv(cublasHandle_t, cublasOperation_t t, int m, int n, const float* alpha, const float* a, int lda,
                                  const float* x, int x_step, const float* beta, float* y, int y_step) {
  if (x_step != 1 || y_step != 1) { return CUBLAS_STATUS_NOT_SUPPORTED; }
  const int rows = t == CUBLAS_OP_N ? m : n, inner = t == CUBLAS_OP_N ? n : m;
  return harness_emulator::multiply(t, CUBLAS_OP_N, rows, 1, inner, double(*alpha), a, CUDA_R_32F, lda, 0, x, CUDA_R_32F, inner, 0,
                                    double(*beta), y, CUDA_R_32F, rows, 0, 1);
}
